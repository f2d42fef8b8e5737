/** What holds messages that are due, with the reason and the number of messages. */
import { Link } from '@tanstack/react-router';
import type { ResponseOf } from '../../api/client.ts';
import { Badge } from '../../parts/badge.tsx';
import { Name } from '../../parts/copy.tsx';
import { countText } from '../../parts/count.ts';
import { Table } from '../../parts/table.tsx';
import { Time } from '../../parts/time.tsx';

type HeldBack = ResponseOf<'getOverview'>['heldBack'];
type Counted = ResponseOf<'getOverview'>['unfinished'];

type Reason = HeldBack['queues'][number]['reason'];

/** A short label for each reason of the API. */
const REASONS: Record<Reason, string> = {
  delayed: 'delayed',
  retrying: 'retrying',
  parked: 'parked: code changed',
  due: 'due',
  endpoint_busy: 'endpoint busy',
  endpoint_unproven: 'endpoint health unknown',
  project_busy: 'project busy',
  queued: 'queued',
  queue_paused: 'queue paused',
  key_paused: 'key paused',
  key_full: 'parallelism limit reached',
  key_rate: 'rate limit reached',
  key_turn: 'next in the rotation',
  parallelism: 'project parallelism limit reached',
  attempting: 'in flight',
  cancelling: 'cancelling',
};

interface Row {
  what: 'project' | 'endpoint' | 'queue' | 'flow-control key';
  name: string;
  why: string;
  waiting: Counted;
  dueAtMs: number;
}

export function HeldTable({ of: { project, origins, queues, flowControlKeys, isPartial } }: { of: HeldBack }) {
  const rows: Row[] = [
    ...(project
      ? [
          {
            what: 'project' as const,
            name: 'all',
            why: REASONS[project.reason],
            waiting: project.waiting,
            dueAtMs: project.due,
          },
        ]
      : []),
    ...origins.map(({ origin, isHeldBack, reason, waiting, due }) => ({
      what: 'endpoint' as const,
      name: origin,
      why: isHeldBack ? 'too many attempts without a response' : REASONS[reason],
      waiting,
      dueAtMs: due,
    })),
    ...queues.map(({ queueName, reason, waiting, due }) => ({
      what: 'queue' as const,
      name: queueName,
      why: REASONS[reason],
      waiting,
      dueAtMs: due,
    })),
    ...flowControlKeys.map(({ flowControlKey, reason, waiting, due }) => ({
      what: 'flow-control key' as const,
      name: flowControlKey,
      why: REASONS[reason],
      waiting,
      dueAtMs: due,
    })),
  ];
  if (rows.length === 0) return <p className="text-quiet">No messages are held.</p>;
  return (
    <div className="flex flex-col gap-6">
      <Table
        label="Held messages"
        rows={rows}
        keyOf={({ what, name }) => `${what} ${name}`}
        columns={[
          { name: 'Held by', cell: ({ what, name }) => <Holder what={what} name={name} /> },
          { name: 'Reason', cell: ({ why }) => <Badge tone="warn">{why}</Badge> },
          { name: 'Messages', className: 'text-right tabular-nums', cell: ({ waiting }) => countText(waiting) },
          { name: 'Oldest due', cell: ({ dueAtMs }) => <Time atMs={dueAtMs} /> },
        ]}
      />
      {isPartial && <p className="text-quiet">The list is truncated.</p>}
    </div>
  );
}

function Holder({ what, name }: Pick<Row, 'what' | 'name'>) {
  const code = <Name>{name}</Name>;
  return (
    <span className="flex flex-wrap items-baseline gap-x-2">
      <span className="text-quiet">{what}</span>
      {what === 'queue' ? (
        <Link to="/queues">{code}</Link>
      ) : what === 'flow-control key' ? (
        <Link to="/flow-control" search={{ search: name }}>
          {code}
        </Link>
      ) : (
        code
      )}
    </span>
  );
}
