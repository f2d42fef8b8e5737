/** Confirms a bulk action with the number of its entries, and shows its progress. */
import { useQueryClient } from '@tanstack/react-query';
import { useEffect, useRef, useState } from 'react';
import type { Job } from './bulk.ts';
import { Button } from './button.tsx';
import { Dialog } from './dialog.tsx';
import { Failure } from './states.tsx';

export function BulkDialog({ job: opened, onClose }: { job: Job; onClose: () => void }) {
  // The job stays the same even if the list behind the dialog reloads.
  const [job] = useState(opened);
  const queries = useQueryClient();
  const [count, setCount] = useState(0);
  const [isCounted, setIsCounted] = useState(false);
  const [progress, setProgress] = useState({ done: 0, missing: 0 });
  const [stage, setStage] = useState<'confirmation' | 'running' | 'stopped' | 'done'>('confirmation');
  const [error, setError] = useState<Error>();
  const stop = useRef(new AbortController());

  useEffect(() => {
    const counting = new AbortController();
    stop.current = counting;
    const setTotal = (total: number): void => {
      setCount(total);
      setIsCounted(true);
    };
    job.count(setCount, counting.signal).then(setTotal, (failure: Error) => {
      if (!counting.signal.aborted) setError(failure);
    });
    return () => stop.current.abort();
  }, [job]);

  const run = async (): Promise<void> => {
    // A start before the count is complete applies to all entries.
    stop.current.abort();
    stop.current = new AbortController();
    const { signal } = stop.current;
    setStage('running');
    try {
      let cursor: string | undefined;
      do {
        const step = await job.step(cursor, signal);
        setProgress(({ done, missing }) => ({ done: done + step.done, missing: missing + (step.missing ?? 0) }));
        cursor = step.cursor;
      } while (cursor !== undefined && !signal.aborted);
      setStage(cursor === undefined ? 'done' : 'stopped');
    } catch (failure) {
      if (!signal.aborted) setError(failure as Error);
      setStage('stopped');
    }
    await queries.invalidateQueries();
  };

  return (
    <Dialog
      title={job.title}
      onClose={onClose}
      actions={
        stage === 'confirmation' ? (
          <Button kind={job.kind} disabled={count === 0} onClick={() => void run()}>
            {job.button} {isCounted ? count.toLocaleString() : 'all'}
          </Button>
        ) : (
          stage === 'running' && <Button onClick={() => stop.current.abort()}>Stop</Button>
        )
      }
    >
      <div className="flex flex-col gap-3" aria-live="polite">
        {stage === 'confirmation' ? (
          <>
            <p>
              <strong className="tabular-nums">{count.toLocaleString()}</strong> {job.nounOf(count)}
              {!isCounted && !error && ' so far, still counting…'}
            </p>
            <p className="text-quiet">{job.warning}</p>
          </>
        ) : (
          <>
            <p>
              <strong className="tabular-nums">{progress.done.toLocaleString()}</strong> of{' '}
              {isCounted ? count.toLocaleString() : `more than ${count.toLocaleString()}`} {job.done}
              {progress.missing > 0 && `, ${progress.missing.toLocaleString()} no longer existed`}
              {stage !== 'running' && '.'}
            </p>
            <progress
              aria-label={job.title}
              className="h-2 w-full appearance-none overflow-hidden rounded-full bg-raised [&::-moz-progress-bar]:bg-accent [&::-webkit-progress-bar]:bg-raised [&::-webkit-progress-value]:bg-accent"
              max={Math.max(1, count)}
              value={stage === 'done' ? Math.max(1, count) : progress.done + progress.missing}
            />
          </>
        )}
        {error && <Failure error={error} />}
      </div>
    </Dialog>
  );
}
