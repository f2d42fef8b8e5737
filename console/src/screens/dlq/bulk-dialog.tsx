/** Asks before many entries are retried or deleted, with their count, and shows how far it is. */
import { useQueryClient } from '@tanstack/react-query';
import { useEffect, useRef, useState } from 'react';
import { Button } from '../../parts/button.tsx';
import { Dialog } from '../../parts/dialog.tsx';
import { Failure } from '../../parts/states.tsx';
import { type BulkAction, countMatching, type Progress, runBulk } from './bulk.ts';
import type { Selection } from './selection.ts';

interface Props {
  action: BulkAction;
  selection: Selection;
  filter: Record<string, string>;
  onClose: () => void;
}

const WORDS = {
  retry: { title: 'Retry entries of the DLQ', doing: 'Retrying', done: 'retried', button: 'Retry', kind: 'main' },
  delete: { title: 'Delete entries of the DLQ', doing: 'Deleting', done: 'deleted', button: 'Delete', kind: 'danger' },
} as const;

type Stage = 'asks' | 'runs' | 'done';

export function BulkDialog({ action, selection, filter, onClose }: Props) {
  const words = WORDS[action];
  const queries = useQueryClient();
  const [stage, setStage] = useState<Stage>('asks');
  const [progress, setProgress] = useState<Progress>({ done: 0, gone: 0 });
  const [error, setError] = useState<Error>();
  const stop = useRef(new AbortController());
  // What fails while it runs, such as an entry that was retried, is not of it.
  const [bounded] = useState(() => ({ toDate: String(Date.now()), ...filter }));
  const counted = useCount(selection, bounded, setError);

  useEffect(() => () => stop.current.abort(), []);
  const run = async (): Promise<void> => {
    setStage('runs');
    setError(undefined);
    stop.current = new AbortController();
    try {
      setProgress(await runBulk({ action, selection, filter: bounded }, setProgress, stop.current.signal));
    } catch (failure) {
      if (!stop.current.signal.aborted) setError(failure as Error);
    }
    setStage('done');
    await queries.invalidateQueries();
  };
  return (
    <Dialog
      title={words.title}
      onClose={onClose}
      actions={
        stage === 'asks' ? (
          <Button kind={words.kind} disabled={counted.count === 0} onClick={() => void run()}>
            {words.button} {counted.isWhole ? counted.count.toLocaleString() : 'all'}
          </Button>
        ) : (
          stage === 'runs' && <Button onClick={() => stop.current.abort()}>Stop</Button>
        )
      }
    >
      <div className="flex flex-col gap-3" aria-live="polite">
        {stage === 'asks' && <Question action={action} {...counted} isFiltered={Object.keys(filter).length > 0} />}
        {stage !== 'asks' && (
          <>
            <p>
              {stage === 'runs' ? `${words.doing}: ` : ''}
              <strong className="tabular-nums">{progress.done.toLocaleString()}</strong> of{' '}
              {counted.isWhole ? counted.count.toLocaleString() : `more than ${counted.count.toLocaleString()}`}{' '}
              {words.done}
              {progress.gone > 0 && `, ${progress.gone.toLocaleString()} were gone already`}
              {stage === 'done' && '.'}
            </p>
            <progress
              aria-label={words.doing}
              className="h-2 w-full appearance-none overflow-hidden rounded-full bg-raised [&::-moz-progress-bar]:bg-accent [&::-webkit-progress-bar]:bg-raised [&::-webkit-progress-value]:bg-accent"
              max={Math.max(1, counted.count)}
              value={stage === 'done' && !error ? Math.max(1, counted.count) : progress.done + progress.gone}
            />
          </>
        )}
        {error && <Failure error={error} />}
      </div>
    </Dialog>
  );
}

interface Counted {
  count: number;
  isWhole: boolean;
}

function Question({ action, count, isWhole, isFiltered }: Counted & { action: BulkAction; isFiltered: boolean }) {
  const which = isFiltered ? 'entries that match the filter' : 'entries';
  return (
    <>
      <p>
        <strong className="tabular-nums">{count.toLocaleString()}</strong> {which}
        {isWhole ? '' : ' so far, still counting…'}
      </p>
      <p className="text-quiet">
        {action === 'retry'
          ? 'Each becomes a new message with the same content and settings, and leaves the DLQ.'
          : 'They are gone for good: neither their bodies nor their answers can be read again.'}
      </p>
    </>
  );
}

function useCount(selection: Selection, filter: Record<string, string>, fail: (error: Error) => void): Counted {
  const chosen = selection.kind === 'some' ? selection.ids.size : undefined;
  const [counted, setCounted] = useState<Counted>({ count: chosen ?? 0, isWhole: chosen !== undefined });
  // biome-ignore lint/correctness/useExhaustiveDependencies: what the dialog was opened for does not change
  useEffect(() => {
    if (chosen !== undefined) return;
    const stop = new AbortController();
    countMatching(filter, (count) => setCounted({ count, isWhole: false }), stop.signal).then(
      (count) => setCounted({ count, isWhole: true }),
      (error: Error) => {
        if (!stop.signal.aborted) fail(error);
      },
    );
    return () => stop.abort();
  }, []);
  return counted;
}
