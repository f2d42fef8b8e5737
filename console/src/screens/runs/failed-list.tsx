/** Failed runs, to resume, restart or delete, individually or in bulk. */
import { useState } from 'react';
import type { ResponseOf } from '../../api/client.ts';
import { nextPageLoaderOf, usePages } from '../../api/pages.ts';
import { Action } from '../../parts/action.tsx';
import { Badge } from '../../parts/badge.tsx';
import type { Job } from '../../parts/bulk.ts';
import { BulkDialog } from '../../parts/bulk-dialog.tsx';
import { Button } from '../../parts/button.tsx';
import { countOf } from '../../parts/count.ts';
import { type ListColumn, LongList } from '../../parts/long-list.tsx';
import { Panel } from '../../parts/panel.tsx';
import { Empty, QueryResult } from '../../parts/states.tsx';
import { Time } from '../../parts/time.tsx';
import { type FailedAction, failedJob } from './bulk.ts';
import { messageIn } from './failure.ts';
import { RunLink } from './run-link.tsx';
import { URL_COLUMN } from './url-column.tsx';

type FailedRun = ResponseOf<'listFailedWorkflowRuns'>['messages'][number];

const PAGE_COUNT = 100;
const GRID =
  'grid-cols-[1.25rem_minmax(0,1fr)_6.25rem] md:grid-cols-[1.25rem_minmax(0,3fr)_minmax(0,3fr)_minmax(0,3fr)_10.5rem_6.5rem]';

const ACTIONS: readonly (readonly [action: FailedAction, name: string, kind: 'main' | 'plain' | 'danger'])[] = [
  ['resume', 'Resume', 'main'],
  ['restart', 'Restart', 'plain'],
  ['delete', 'Delete', 'danger'],
];

export function FailedList({ filter }: { filter: Record<string, string> }) {
  const [isPaused, setIsPaused] = useState(false);
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const [job, setJob] = useState<Job>();
  const query = { ...filter, count: PAGE_COUNT } as never;
  const pages = usePages('listFailedWorkflowRuns', { query }, { isRefreshed: !isPaused });
  const rows: FailedRun[] = pages.data?.pages.flatMap(({ messages }): FailedRun[] => messages) ?? [];
  const isFiltered = Object.keys(filter).length > 0;
  const toggle = (dlqId: string): void => {
    const next = new Set(chosen);
    if (!next.delete(dlqId)) next.add(dlqId);
    setChosen(next);
  };
  const close = (): void => {
    setJob(undefined);
    setChosen(new Set());
  };
  return (
    <Panel
      title={rows.length === 0 ? 'Failed runs' : countOf(rows.length, 'failed run', pages.hasNextPage)}
      actions={
        rows.length > 0 && (
          <>
            <span className="self-center text-quiet" aria-live="polite">
              {chosen.size > 0 ? `${chosen.size.toLocaleString()} selected:` : isFiltered ? 'All matching:' : 'All:'}
            </span>
            {ACTIONS.map(([action, name, kind]) => (
              <Button
                key={action}
                kind={kind}
                onClick={() => setJob(failedJob(action, filter, chosen.size > 0 ? [...chosen] : undefined))}
              >
                {name}…
              </Button>
            ))}
          </>
        )
      }
    >
      <QueryResult query={pages}>
        {() =>
          rows.length === 0 && !pages.hasNextPage ? (
            <Empty title={isFiltered ? 'No failed run matches this filter' : 'No failed runs'}>
              A run fails when the last retry of one of its steps has failed. Fix the app, then resume the run:
              completed steps are not executed again.
            </Empty>
          ) : (
            <LongList
              label="Failed runs"
              columns={columnsOf(chosen, toggle)}
              grid={GRID}
              rows={rows}
              keyOf={({ dlqId }) => dlqId}
              onEnd={nextPageLoaderOf(pages)}
              onPause={setIsPaused}
            />
          )
        }
      </QueryResult>
      {job && <BulkDialog job={job} onClose={close} />}
    </Panel>
  );
}

function columnsOf(chosen: ReadonlySet<string>, toggle: (dlqId: string) => void): ListColumn<FailedRun>[] {
  return [
    {
      name: 'Selected',
      className: 'overflow-hidden text-transparent',
      cell: ({ dlqId, workflowRunId }) => (
        <input
          type="checkbox"
          aria-label={`Select ${workflowRunId}`}
          className="block size-4 accent-accent"
          checked={chosen.has(dlqId)}
          onChange={() => toggle(dlqId)}
        />
      ),
    },
    {
      name: 'Run',
      cell: (dead) => (
        <>
          <RunLink id={dead.workflowRunId} createdAtMs={dead.workflowCreatedAt}>
            <span className="block truncate">{dead.workflowRunId}</span>
          </RunLink>
          <p className="truncate text-xs text-bad md:hidden">{reasonOf(dead)}</p>
        </>
      ),
    },
    URL_COLUMN,
    {
      name: 'Reason',
      className: 'max-md:hidden',
      cell: (dead) => (
        <p className="truncate text-bad" title={reasonOf(dead)}>
          {reasonOf(dead)}
        </p>
      ),
    },
    { name: 'Failure callback', className: 'max-md:hidden', cell: callbackOf },
    { name: 'Failed', className: 'text-quiet', cell: ({ dlqId }) => <Time atMs={failedAtMs(dlqId)} /> },
  ];
}

function reasonOf({ responseStatus, responseBody = '' }: FailedRun): string {
  const message = messageIn(responseBody) ?? responseBody.slice(0, 500);
  return responseStatus === 0 ? message || 'no response' : `${responseStatus} ${message}`;
}

const CALLBACKS = {
  CALLBACK_SUCCESS: ['good', 'delivered'],
  CALLBACK_FAIL: ['bad', 'failed'],
  CALLBACK_INPROGRESS: ['busy', 'in progress'],
  CALLBACK_CANCELED: ['quiet', 'cancelled'],
} as const;

function callbackOf({ dlqId, failureFunctionState, failureCallbackInfo }: FailedRun): React.ReactNode {
  const state = failureFunctionState ?? failureCallbackInfo?.state;
  if (state === undefined) return <span className="text-quiet">none</span>;
  const [tone, word] = CALLBACKS[state];
  return (
    <span className="flex flex-wrap items-center gap-2">
      <Badge tone={tone}>{word}</Badge>
      {state === 'CALLBACK_FAIL' && (
        <Action operation="repeatFailureCallback" input={{ path: { dlqId } }}>
          Retry
        </Action>
      )}
    </span>
  );
}

/** A DLQ id starts with the time of the failure. */
function failedAtMs(dlqId: string): number {
  return Number(dlqId.split('-', 1)[0]);
}
