/** The queues, keys and endpoints that hold due messages, with the reason and the number of messages. */
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
  kind: 'project' | 'endpoint' | 'queue' | 'flow-control key';
  name: string;
  reason: string;
  waiting: Counted;
  dueAtMs: number;
}

export function HeldTable({ of: { project, origins, queues, flowControlKeys, isPartial } }: { of: HeldBack }) {
  const rows: Row[] = [
    ...(project
      ? [
          {
            kind: 'project' as const,
            name: 'all',
            reason: REASONS[project.reason],
            waiting: project.waiting,
            dueAtMs: project.due,
          },
        ]
      : []),
    ...origins.map(({ origin, isHeldBack, reason, waiting, due }) => ({
      kind: 'endpoint' as const,
      name: origin,
      reason: isHeldBack ? 'too many attempts without a response' : REASONS[reason],
      waiting,
      dueAtMs: due,
    })),
    ...queues.map(({ queueName, reason, waiting, due }) => ({
      kind: 'queue' as const,
      name: queueName,
      reason: REASONS[reason],
      waiting,
      dueAtMs: due,
    })),
    ...flowControlKeys.map(({ flowControlKey, reason, waiting, due }) => ({
      kind: 'flow-control key' as const,
      name: flowControlKey,
      reason: REASONS[reason],
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
        keyOf={({ kind, name }) => `${kind} ${name}`}
        columns={[
          { name: 'Held by', cell: ({ kind, name }) => <Holder kind={kind} name={name} /> },
          { name: 'Reason', cell: ({ reason }) => <Badge tone="warn">{reason}</Badge> },
          { name: 'Messages', className: 'text-right tabular-nums', cell: ({ waiting }) => countText(waiting) },
          { name: 'Oldest due', cell: ({ dueAtMs }) => <Time atMs={dueAtMs} /> },
        ]}
      />
      {isPartial && <p className="text-quiet">The list is truncated.</p>}
    </div>
  );
}

function Holder({ kind, name }: Pick<Row, 'kind' | 'name'>) {
  const code = <Name>{name}</Name>;
  return (
    <span className="flex flex-wrap items-baseline gap-x-2">
      <span className="text-quiet">{kind}</span>
      {kind === 'queue' ? (
        <Link to="/queues">{code}</Link>
      ) : kind === 'flow-control key' ? (
        <Link to="/flow-control" search={{ search: name }}>
          {code}
        </Link>
      ) : (
        code
      )}
    </span>
  );
}
