import { Link } from '@tanstack/react-router';
import { type ResponseOf, useCall } from '../../api/client.ts';
import { Action } from '../../parts/action.tsx';
import { Badge } from '../../parts/badge.tsx';
import { Name } from '../../parts/copy.tsx';
import { countOf } from '../../parts/count.ts';
import { Page, Panel } from '../../parts/panel.tsx';
import { Empty, QueryResult } from '../../parts/states.tsx';
import { type Column, Table } from '../../parts/table.tsx';
import { Time } from '../../parts/time.tsx';

type Queue = ResponseOf<'listQueues'>[number];

const COLUMNS: readonly Column<Queue>[] = [
  { name: 'Queue', cell: ({ name }) => <Name>{name}</Name> },
  {
    name: 'State',
    cell: (queue) => <State queue={queue} />,
  },
  { name: 'Waiting', className: 'text-right tabular-nums', cell: ({ lag }) => lag.toLocaleString() },
  { name: 'Parallelism', className: 'text-right tabular-nums', cell: ({ parallelism }) => parallelism },
  { name: 'Changed', cell: ({ updatedAt }) => <Time atMs={updatedAt} /> },
  { name: '', className: 'text-right', cell: (queue) => <Actions queue={queue} /> },
];

function State({ queue: { paused, blockedBy } }: { queue: Queue }) {
  if (paused) return <Badge tone="warn">paused</Badge>;
  if (!blockedBy) return <Badge tone="good">running</Badge>;
  return (
    <span className="flex flex-wrap items-baseline gap-x-2">
      <Badge tone="warn">blocked</Badge>
      <span className="text-quiet">
        until <Time atMs={blockedBy.due} />, by{' '}
        <Link to="/messages/$messageId" params={{ messageId: blockedBy.messageId }} className="text-accent underline">
          a message
        </Link>
      </span>
    </span>
  );
}

export function Screen() {
  const queues = useCall('listQueues');
  return (
    <Page title="Queues" about="A queue delivers its messages in order, with limited parallelism.">
      <Panel>
        <QueryResult query={queues}>
          {(rows) =>
            rows.length === 0 ? (
              <Empty title="No queues yet">
                The first message to a queue creates it: <code>POST /v2/enqueue/my-queue/https://…</code>
              </Empty>
            ) : (
              <Table label="Queues" columns={COLUMNS} rows={rows} keyOf={({ name }) => name} />
            )
          }
        </QueryResult>
      </Panel>
    </Page>
  );
}

function Actions({ queue: { name, paused, lag } }: { queue: Queue }) {
  const input = { path: { queueName: name } };
  return (
    <span className="inline-flex gap-2">
      <Action operation={paused ? 'resumeQueue' : 'pauseQueue'} input={input}>
        {paused ? 'Resume' : 'Pause'}
      </Action>
      <Action
        operation="deleteQueue"
        input={input}
        kind="danger"
        question={`Deletes the queue ${name} and cancels its ${countOf(lag, 'waiting message')}.`}
      >
        Delete
      </Action>
    </span>
  );
}
