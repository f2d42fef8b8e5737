import { type AnswerOf, useCall, useChange } from '../../api/client.ts';
import { Badge } from '../../parts/badge.tsx';
import { Button } from '../../parts/button.tsx';
import { Code } from '../../parts/copy.tsx';
import { Page, Panel } from '../../parts/panel.tsx';
import { Answered, Empty, Failure } from '../../parts/states.tsx';
import { type Column, Table } from '../../parts/table.tsx';
import { Time } from '../../parts/time.tsx';

type Queue = AnswerOf<'listQueues'>[number];

const COLUMNS: readonly Column<Queue>[] = [
  { name: 'Queue', cell: ({ name }) => <Code>{name}</Code> },
  {
    name: 'State',
    cell: ({ paused }) => (paused ? <Badge tone="warn">paused</Badge> : <Badge tone="good">runs</Badge>),
  },
  { name: 'Waiting', className: 'text-right tabular-nums', cell: ({ lag }) => lag.toLocaleString() },
  { name: 'Parallelism', className: 'text-right tabular-nums', cell: ({ parallelism }) => parallelism },
  { name: 'Changed', cell: ({ updatedAt }) => <Time atMs={updatedAt} /> },
  { name: '', className: 'text-right', cell: (queue) => <PauseButton queue={queue} /> },
];

export function Screen() {
  const queues = useCall('listQueues');
  return (
    <Page title="Queues" about="Messages of a queue go out in order, at most so many at a time.">
      <Panel>
        <Answered query={queues}>
          {(rows) =>
            rows.length === 0 ? (
              <Empty title="There are no queues yet">
                A queue is made by the first message for it: <code>POST /v2/enqueue/my-queue/https://…</code>
              </Empty>
            ) : (
              <Table label="Queues" columns={COLUMNS} rows={rows} keyOf={({ name }) => name} />
            )
          }
        </Answered>
      </Panel>
    </Page>
  );
}

function PauseButton({ queue: { name, paused } }: { queue: Queue }) {
  const pause = useChange('pauseQueue');
  const resume = useChange('resumeQueue');
  const change = paused ? resume : pause;
  return (
    <>
      <Button disabled={change.isPending} onClick={() => change.mutate({ path: { queueName: name } })}>
        {paused ? 'Resume' : 'Pause'}
      </Button>
      {change.error && <Failure error={change.error} />}
    </>
  );
}
