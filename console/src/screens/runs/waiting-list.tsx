/** Runs that wait for events, sorted by event. Each event can be sent from here. */
import { useState } from 'react';
import type { ResponseOf } from '../../api/client.ts';
import { nextPageLoaderOf, usePages, useRows } from '../../api/pages.ts';
import { Button } from '../../parts/button.tsx';
import { countOf } from '../../parts/count.ts';
import { type ListColumn, LongList } from '../../parts/long-list.tsx';
import { Panel } from '../../parts/panel.tsx';
import { Empty, QueryResult } from '../../parts/states.tsx';
import { Time } from '../../parts/time.tsx';
import { NotifyDialog } from './notify-dialog.tsx';
import { RunLink } from './run-link.tsx';
import { URL_COLUMN } from './url-column.tsx';

type Waiter = ResponseOf<'listAllWaiters'>['waiters'][number];

const GRID =
  'grid-cols-[minmax(0,1fr)_5.5rem] md:grid-cols-[minmax(0,2fr)_minmax(0,3fr)_minmax(0,3fr)_7rem_7rem_5.5rem]';

export function WaitingList({ filter }: { filter: Record<string, string> }) {
  const [isPaused, setIsPaused] = useState(false);
  const [notified, setNotified] = useState<Waiter>();
  const pages = usePages('listAllWaiters', { query: filter }, { isRefreshed: !isPaused });
  const rows = useRows(pages.data, waitersOf);
  const isFiltered = Object.keys(filter).length > 0;
  return (
    <Panel title={rows.length === 0 ? 'Waiting runs' : countOf(rows.length, 'waiting run', pages.hasNextPage)}>
      <QueryResult query={pages}>
        {() =>
          rows.length === 0 ? (
            <Empty title={isFiltered ? 'No run is waiting for a matching event' : 'No run is waiting for an event'}>
              A run appears here when it calls <code>context.waitForEvent</code>, until the event is sent or the wait
              times out.
            </Empty>
          ) : (
            <LongList
              label="Runs waiting for events"
              columns={columnsOf(setNotified)}
              grid={GRID}
              rows={rows}
              keyOf={({ messageId }) => messageId}
              onEnd={nextPageLoaderOf(pages)}
              onPause={setIsPaused}
            />
          )
        }
      </QueryResult>
      {notified && (
        <NotifyDialog
          runId={notified.workflowRunId}
          awaitedEvents={[notified.eventId]}
          onClose={() => setNotified(undefined)}
        />
      )}
    </Panel>
  );
}

function waitersOf({ waiters }: ResponseOf<'listAllWaiters'>): readonly Waiter[] {
  return waiters;
}

function columnsOf(notify: (waiter: Waiter) => void): ListColumn<Waiter>[] {
  return [
    {
      name: 'Event',
      cell: (waiter) => (
        <>
          <p className="truncate font-medium" title={waiter.eventId}>
            {waiter.eventId}
          </p>
          <p className="truncate text-xs md:hidden">
            <LinkTo waiter={waiter} />
          </p>
        </>
      ),
    },
    { name: 'Run', className: 'max-md:hidden', cell: (waiter) => <LinkTo waiter={waiter} /> },
    URL_COLUMN,
    { name: 'Since', className: 'text-quiet max-md:hidden', cell: ({ since }) => <Time atMs={since} /> },
    { name: 'Times out', className: 'text-quiet max-md:hidden', cell: ({ deadline }) => <Time atMs={deadline} /> },
    {
      name: '',
      className: 'text-right',
      cell: (waiter) => (
        <Button aria-label={`Send ${waiter.eventId} to ${waiter.workflowRunId}`} onClick={() => notify(waiter)}>
          Send…
        </Button>
      ),
    },
  ];
}

function LinkTo({ waiter: { workflowRunId, workflowCreatedAt } }: { waiter: Waiter }) {
  return (
    <RunLink id={workflowRunId} createdAtMs={workflowCreatedAt}>
      <span className="block truncate">{workflowRunId}</span>
    </RunLink>
  );
}
