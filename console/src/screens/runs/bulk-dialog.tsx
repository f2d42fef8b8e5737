/** Asks before many runs are changed, with their count, and shows how far it is. */
import { useQueryClient } from '@tanstack/react-query';
import { useEffect, useRef, useState } from 'react';
import { Button } from '../../parts/button.tsx';
import { Dialog } from '../../parts/dialog.tsx';
import { Failure } from '../../parts/states.tsx';
import type { Job } from './bulk.ts';

export function BulkDialog({ job, onClose }: { job: Job; onClose: () => void }) {
  // What it was opened for stays, whatever is read anew behind it.
  const [{ title, done, warning, button, kind, count: readCount, step }] = useState(job);
  const queries = useQueryClient();
  const [count, setCount] = useState(0);
  const [isCounted, setIsCounted] = useState(false);
  const [progress, setProgress] = useState(0);
  const [stage, setStage] = useState<'asks' | 'runs' | 'over'>('asks');
  const [error, setError] = useState<Error>();
  const stop = useRef(new AbortController());

  useEffect(() => {
    const counting = new AbortController();
    const fail = (failure: Error): void => {
      if (!counting.signal.aborted) setError(failure);
    };
    readCount(setCount, counting.signal).then((whole) => {
      setCount(whole);
      setIsCounted(true);
    }, fail);
    return () => {
      counting.abort();
      stop.current.abort();
    };
  }, [readCount]);

  const run = async (): Promise<void> => {
    const { signal } = stop.current;
    setStage('runs');
    try {
      let cursor: string | undefined;
      do {
        const page = await step(cursor, signal);
        setProgress((before) => before + page.done);
        cursor = page.cursor;
      } while (cursor !== undefined && !signal.aborted);
    } catch (failure) {
      if (!signal.aborted) setError(failure as Error);
    }
    setStage('over');
    await queries.invalidateQueries();
  };

  return (
    <Dialog
      title={title}
      onClose={onClose}
      actions={
        stage === 'asks' ? (
          <Button kind={kind} disabled={!isCounted || count === 0} onClick={() => void run()}>
            {button}
            {isCounted && ` (${count.toLocaleString()})`}
          </Button>
        ) : (
          stage === 'runs' && <Button onClick={() => stop.current.abort()}>Stop</Button>
        )
      }
    >
      <div className="flex flex-col gap-3" aria-live="polite">
        {stage === 'asks' ? (
          <>
            <p>
              <strong className="tabular-nums">{count.toLocaleString()}</strong> {count === 1 ? 'run' : 'runs'}
              {!isCounted && !error && ' so far, still counting…'}
            </p>
            <p className="text-quiet">{warning}</p>
          </>
        ) : (
          <>
            <p>
              <strong className="tabular-nums">{progress.toLocaleString()}</strong> of {count.toLocaleString()} {done}
              {stage === 'over' && '.'}
            </p>
            <progress
              aria-label={title}
              className="h-2 w-full accent-accent"
              max={Math.max(1, count)}
              value={progress}
            />
          </>
        )}
        {error && <Failure error={error} />}
      </div>
    </Dialog>
  );
}
