/** The log of the project, newest first, with live updates. */
import { useMemo, useState } from 'react';
import type { LiveEntry } from '../../api/live.ts';
import { nextPageLoaderOf } from '../../api/pages.ts';
import { StateBadge } from '../../parts/badge.tsx';
import { Button } from '../../parts/button.tsx';
import { Code } from '../../parts/copy.tsx';
import { countOf } from '../../parts/count.ts';
import { type ListColumn, LongList } from '../../parts/long-list.tsx';
import { Facts, Panel } from '../../parts/panel.tsx';
import { Empty, QueryResult } from '../../parts/states.tsx';
import { exactTime, Time } from '../../parts/time.tsx';
import { ExpandButton, MessageLink, Target } from './cells.tsx';
import { FirstMessage } from './first-message.tsx';
import { useGrowingLog } from './growing-log.ts';
import { LiveSwitch } from './live-switch.tsx';
import { keyOf, latestOf } from './rows.ts';

const GRID = 'grid-cols-[8.5rem_minmax(0,1fr)] md:grid-cols-[9rem_6.5rem_minmax(0,3fr)_minmax(0,2fr)_minmax(0,1fr)]';

interface Props {
  filter: Record<string, string>;
  /** Shows each message once, with its latest entry. */
  isGrouped: boolean;
}

export function LogList({ filter, isGrouped }: Props) {
  const [isLive, setIsLive] = useState(true);
  const [isPaused, setIsPaused] = useState(false);
  const [openKey, setOpenKey] = useState<string>();
  const { entries, live, pendingCount, history } = useGrowingLog(filter, { isEnabled: true, isLive, isPaused });
  const rows = useMemo(() => (isGrouped ? latestOf(entries) : entries), [entries, isGrouped]);
  const keyOfRow = isGrouped ? ({ messageId }: LiveEntry): string => messageId : keyOf;
  const columns = columnsOf((row) => {
    const key = keyOfRow(row);
    return { isOpen: key === openKey, toggle: () => setOpenKey(key === openKey ? undefined : key) };
  });
  return (
    <Panel
      title={rows.length === 0 ? 'Log' : countOf(rows.length, isGrouped ? 'message' : 'change', history.hasNextPage)}
      actions={
        <>
          {pendingCount > 0 && <Button onClick={() => setIsPaused(false)}>{pendingCount.toLocaleString()} new</Button>}
          <LiveSwitch live={live} isOn={isLive} change={setIsLive} />
        </>
      }
    >
      <QueryResult query={history}>
        {() =>
          rows.length > 0 ? (
            <LongList
              label="Messages"
              columns={columns}
              grid={GRID}
              rows={rows}
              keyOf={keyOfRow}
              openKey={openKey}
              detail={(entry) => <Detail entry={entry} />}
              onEnd={nextPageLoaderOf(history)}
              onPause={setIsPaused}
            />
          ) : Object.keys(filter).length > 0 ? (
            <Empty title="No entry matches this filter">Log entries are deleted after their retention time.</Empty>
          ) : (
            <FirstMessage />
          )
        }
      </QueryResult>
    </Panel>
  );
}

function columnsOf(expansionOf: (row: LiveEntry) => { isOpen: boolean; toggle: () => void }): ListColumn<LiveEntry>[] {
  return [
    {
      name: 'State',
      cell: (row) => (
        <span className="flex items-center gap-1">
          <ExpandButton {...expansionOf(row)} />
          <StateBadge state={row.state} />
        </span>
      ),
    },
    { name: 'Time', className: 'text-quiet max-md:hidden', cell: ({ time }) => <Time atMs={time} /> },
    {
      name: 'Message',
      cell: (row) => (
        <>
          <MessageLink id={row.messageId}>
            <Target method={row.method} url={row.url} />
          </MessageLink>
          <p className="truncate text-xs text-quiet md:hidden">
            <Time atMs={row.time} /> <ResponseCell entry={row} />
          </p>
        </>
      ),
    },
    { name: 'Response', className: 'truncate max-md:hidden', cell: (row) => <ResponseCell entry={row} /> },
    {
      name: 'Queue, labels',
      className: 'truncate text-quiet max-md:hidden',
      cell: ({ queueName, labels = [] }) => [queueName, ...labels].filter(Boolean).join(', '),
    },
  ];
}

function ResponseCell({ entry: { responseStatus, error, nextDeliveryTime } }: { entry: LiveEntry }) {
  const text = error ?? (responseStatus === undefined ? '' : String(responseStatus));
  return (
    <>
      {nextDeliveryTime !== undefined && (
        <span className="mr-2 text-quiet">
          next <Time atMs={nextDeliveryTime} />
        </span>
      )}
      <span title={text} className={error === undefined ? undefined : 'text-bad'}>
        {text}
      </span>
    </>
  );
}

function Detail({ entry }: { entry: LiveEntry }) {
  const { time, messageId, url, error, responseStatus, nextDeliveryTime, queueName, flowControlKey, scheduleId } =
    entry;
  return (
    <Facts
      facts={[
        [
          'Message',
          <MessageLink key="id" id={messageId}>
            <Code>{messageId}</Code>
          </MessageLink>,
        ],
        ['URL', <Code key="url">{url}</Code>],
        ['Time', exactTime(time)],
        ['Error', error],
        ['Status', responseStatus],
        ['Next attempt', nextDeliveryTime && <Time atMs={nextDeliveryTime} />],
        ['URL group', entry.topicName],
        ['Queue', queueName],
        ['Flow-control key', flowControlKey],
        ['Schedule', scheduleId],
        ['Labels', entry.labels?.join(', ')],
      ]}
    />
  );
}
