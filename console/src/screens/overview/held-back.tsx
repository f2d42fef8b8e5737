/** What is ready but may not go out, and by what it is held. */
import { Link } from '@tanstack/react-router';
import type { AnswerOf } from '../../api/client.ts';
import { Badge } from '../../parts/badge.tsx';
import { Name } from '../../parts/copy.tsx';
import { countText } from '../../parts/count.ts';
import { Table } from '../../parts/table.tsx';
import { Time } from '../../parts/time.tsx';

type HeldBack = AnswerOf<'getOverview'>['heldBack'];
type Counted = AnswerOf<'getOverview'>['unfinished'];

type Reason = HeldBack['queues'][number]['reason'];

/** Why a line of messages does not go on, in a few words. */
const WORDS: Record<Reason, string> = {
  delayed: 'delayed',
  retrying: 'to be retried',
  parked: 'code has changed',
  due: 'due now',
  endpoint_busy: 'endpoint busy',
  endpoint_unproven: 'endpoint not yet proven',
  project_busy: 'project busy',
  queued: 'in order',
  queue_paused: 'paused',
  key_paused: 'paused',
  key_full: 'all its slots in use',
  key_rate: 'rate used up',
  key_turn: 'waits its turn',
  parallelism: 'all slots of the project in use',
  attempting: 'in flight',
  cancelling: 'being cancelled',
};

interface Row {
  what: 'project' | 'endpoint' | 'queue' | 'flow-control key';
  name: string;
  why: string;
  waiting: Counted;
  dueAtMs: number;
}

export function HeldBackTable({ of: { project, origins, queues, flowControlKeys, isPartial } }: { of: HeldBack }) {
  const rows: Row[] = [
    ...(project
      ? [
          {
            what: 'project' as const,
            name: 'all',
            why: WORDS[project.reason],
            waiting: project.waiting,
            dueAtMs: project.due,
          },
        ]
      : []),
    ...origins.map(({ origin, isHeldBack, reason, waiting, due }) => ({
      what: 'endpoint' as const,
      name: origin,
      why: isHeldBack ? 'too many attempts had no answer' : WORDS[reason],
      waiting,
      dueAtMs: due,
    })),
    ...queues.map(({ queueName, reason, waiting, due }) => ({
      what: 'queue' as const,
      name: queueName,
      why: WORDS[reason],
      waiting,
      dueAtMs: due,
    })),
    ...flowControlKeys.map(({ flowControlKey, reason, waiting, due }) => ({
      what: 'flow-control key' as const,
      name: flowControlKey,
      why: WORDS[reason],
      waiting,
      dueAtMs: due,
    })),
  ];
  if (rows.length === 0) return <p className="text-quiet">Nothing is held back.</p>;
  return (
    <div className="flex flex-col gap-6">
      <Table
        label="Held back"
        rows={rows}
        keyOf={({ what, name }) => `${what} ${name}`}
        columns={[
          { name: 'By', cell: ({ what, name }) => <Place what={what} name={name} /> },
          { name: 'Why', cell: ({ why }) => <Badge tone="warn">{why}</Badge> },
          { name: 'Waiting', className: 'text-right tabular-nums', cell: ({ waiting }) => countText(waiting) },
          { name: 'The first was due', cell: ({ dueAtMs }) => <Time atMs={dueAtMs} /> },
        ]}
      />
      {isPartial && <p className="text-quiet">There are more of them.</p>}
    </div>
  );
}

function Place({ what, name }: Pick<Row, 'what' | 'name'>) {
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
