/**
 * Checks the invariants of a database, which every transaction preserves. Each invariant has a query that finds the rows
 * that violate it. `waypost doctor` runs these queries, also while a server is running.
 */
import type { Queries } from '../../driver.ts';
import { notEnding, PAST_LANES, WAIT_STATE } from '../lanes/wait-states.ts';
import { PLACEMENT } from '../locking/placement.ts';
import { REVIVING, RUN_STATE } from '../runs/run-rows.ts';

export interface Invariant {
  /** A sentence that is true of a sound database. */
  statement: string;
  /** Selects the names of up to `?` rows that violate the invariant. */
  offenders: string;
  /** Not checked while a day of logs is dropped: the invariant does not hold between the transactions of a drop. */
  isPausedByExpiry?: true;
}

/** Tables with an index that begins with the project. A project with rows anywhere has rows in one of these. */
const TABLES_OF_PROJECTS = [
  'logs',
  'dead',
  'runs',
  'queues',
  'flow_keys',
  'schedules',
  'deduplications',
  'url_groups',
  'minutes',
];

/** Each query reads one table or one partial index, and only once. */
export const INVARIANTS: readonly Invariant[] = [
  {
    statement: 'Every unfinished message has its content.',
    offenders: `select 'message ' || m.key as name from messages m
      where not exists lookup (select 1 from contents c where c.key = m.key) limit ?`,
  },
  {
    statement: 'Every DLQ entry has its content.',
    offenders: `select 'DLQ entry ' || d.failed_at_ms || '-' || d.key as name from dead d
      where not exists lookup (select 1 from contents c where c.key = d.key) limit ?`,
  },
  {
    statement: 'Every log entry has the content it tells of.',
    offenders: `select 'log entry ' || l.seq as name from logs l
      where not exists lookup (select 1 from contents c where c.key = l.message_key) limit ?`,
  },
  {
    statement: 'Every content is referred to by a message, a DLQ entry, a log entry, a journal or a run.',
    offenders: `select 'content ' || c.id as name from contents c
      where not exists lookup (select 1 from messages m where m.key = c.key)
        and not exists lookup (select 1 from dead d where d.key = c.key)
        and not exists lookup (select 1 from logs l where l.message_key = c.key)
        and not exists lookup (select 1 from journal j where j.key = c.key)
        and not exists lookup (select 1 from runs r where r.key = c.key) limit ?`,
    isPausedByExpiry: true,
  },
  {
    statement: 'Every message belongs to a project that exists.',
    offenders: `select 'message ' || m.key as name from messages m
      where not exists lookup (select 1 from projects p where p.id = m.project_id) limit ?`,
  },
  {
    statement: 'Nothing is here of a project that lives in another cell.',
    offenders: `select 'message ' || m.key as name from messages m
      where exists lookup (select 1 from projects p where p.id = m.project_id and p.placement = ${PLACEMENT.elsewhere})
      union all select 'project ' || p.id as name from projects p where p.placement = ${PLACEMENT.elsewhere}
        and (${TABLES_OF_PROJECTS.map((table) => `exists lookup (select 1 from ${table} t where t.project_id = p.id)`).join(' or ')}) limit ?`,
  },
  {
    statement: 'A message is claimed with a token, a time and a worker, or not at all.',
    offenders: `select 'message ' || m.key as name from messages m
      where (m.claim_token is null) <> (m.claimed_at_ms is null)
        or (m.claim_token is null) <> (m.worker is null) limit ?`,
  },
  {
    statement: 'No claim token is used twice.',
    offenders: `select 'claim token ' || m.claim_token as name from messages m
      where m.claim_token is not null group by m.claim_token having count(*) > 1 limit ?`,
  },
  {
    statement: 'No message is both unfinished and dead.',
    offenders: `select 'message ' || d.key as name from dead d
      where exists lookup (select 1 from messages m where m.key = d.key) limit ?`,
  },
  {
    statement: 'Every message that waits for a queue has a queue.',
    offenders: `select 'message ' || m.key as name from messages m
      where m.claim_token is null and m.wait_state = ${WAIT_STATE.queue}
        and not exists lookup (select 1 from queues q where q.project_id = m.project_id and q.id = m.queue_id) limit ?`,
  },
  {
    statement: 'No message waits for a queue with a free permit.',
    offenders: `select 'queue ' || q.name as name from queues q
      where q.paused = 0 and q.deleted = 0
        and exists lookup (select 1 from messages m
          where m.project_id = q.project_id and m.queue_id = q.id and m.claim_token is null and m.wait_state = ${WAIT_STATE.queue})
        and (select count(distinct m.queue_permit) from messages m
          where m.project_id = q.project_id and m.queue_id = q.id and m.queue_permit is not null) < q.parallelism
      limit ?`,
  },
  {
    statement: 'No message waits for a queue that has given it a permit.',
    offenders: `select 'message ' || m.key as name from messages m
      where m.claim_token is null and m.wait_state = ${WAIT_STATE.queue} and m.queue_permit = m.key
        and exists lookup (select 1 from queues q
          where q.project_id = m.project_id and q.id = m.queue_id and q.paused = 0 and q.deleted = 0) limit ?`,
  },
  {
    statement: 'Every message that waits for a flow-control key has one.',
    offenders: `select 'message ' || m.key as name from messages m
      where m.claim_token is null and m.wait_state = ${WAIT_STATE.flow}
        and not exists lookup (select 1 from flow_keys f where f.project_id = m.project_id and f.key = m.flow_key) limit ?`,
  },
  {
    statement: 'Every flow-control key that may start a message has a time at which it does.',
    offenders: `select 'flow-control key ' || f.key as name from flow_keys f
      where f.paused = 0 and f.wake_at_ms is null
        and exists lookup (select 1 from messages m
          where m.project_id = f.project_id and m.flow_key = f.key and m.claim_token is null and m.wait_state = ${WAIT_STATE.flow}
            and ${notEnding('m')})
        and (f.parallelism is null or (select count(*) from messages m
          where m.project_id = f.project_id and m.flow_key = f.key
            and (m.claim_token is not null or m.wait_state in (${PAST_LANES}))) < f.parallelism)
        and (f.rate is null or not exists lookup (select 1 from messages m
          where m.project_id = f.project_id and m.flow_key = f.key and m.claim_token is null and m.wait_state in (${PAST_LANES})))
      limit ?`,
  },
  {
    statement: 'Every schedule has a plan of what it publishes.',
    offenders: `select 'schedule ' || s.id as name from schedules s
      where not exists lookup (select 1 from schedule_plans p where p.key = s.key) limit ?`,
  },
  {
    statement: 'Every plan belongs to a schedule.',
    offenders: `select 'plan ' || p.key as name from schedule_plans p
      where not exists lookup (select 1 from schedules s where s.key = p.key) limit ?`,
  },
  {
    statement: 'Every entry of a journal has its content.',
    offenders: `select 'entry ' || j.position || ' of run ' || j.run_key as name from journal j
      where not exists lookup (select 1 from contents c where c.key = j.key) limit ?`,
  },
  {
    statement: 'Every run has the content of the message that it was triggered with.',
    offenders: `select 'run ' || r.id as name from runs r
      where not exists lookup (select 1 from contents c where c.key = r.key) limit ?`,
  },
  {
    statement: 'Every journal belongs to a run.',
    offenders: `select 'journal ' || j.run_key as name from journal j
      where j.position = 0 and not exists lookup (select 1 from runs r where r.key = j.run_key) limit ?`,
  },
  {
    statement: 'The journal of an active run has all its entries, without a gap.',
    offenders: `select 'run ' || r.id as name from runs r
      where r.state = ${RUN_STATE.RUN_STARTED} and (select count(*) from journal j where j.run_key = r.key) <> r.entries
        or r.state = ${RUN_STATE.RUN_STARTED} and (select max(j.position) from journal j where j.run_key = r.key) <> r.entries - 1 limit ?`,
  },
  {
    statement: 'Only active runs wait for events or have pending events.',
    offenders: `select 'waiter ' || w.key as name from waiters w
      where not exists lookup (select 1 from runs r where r.key = w.run_key and r.state = ${RUN_STATE.RUN_STARTED})
      union all select 'pending event ' || m.key as name from pending_events m
      where not exists lookup (select 1 from runs r where r.key = m.run_key and r.state = ${RUN_STATE.RUN_STARTED}) limit ?`,
  },
  {
    statement:
      'Of a run that is over and not ending, only what tells of its failure goes out; what was in flight is marked.',
    offenders: `select 'message ' || m.key as name from messages m
      where m.run_key is not null and m.journal_position is not null
        and (m.claim_token is null or m.cancel_requested_at_ms is null)
        and not exists lookup (select 1 from ending_runs e where e.key = m.run_key)
        and not exists lookup (select 1 from runs r where r.key = m.run_key and r.state = ${RUN_STATE.RUN_STARTED}) limit ?`,
  },
  {
    statement: 'A run that is ending is over.',
    offenders: `select 'run ' || e.key as name from ending_runs e
      where exists lookup (select 1 from runs r where r.key = e.key and r.state = ${RUN_STATE.RUN_STARTED}) limit ?`,
  },
  {
    statement: 'Nothing is claimed of a run that is being revived.',
    offenders: `select 'run ' || r.id as name from runs r
      where r.state = ${REVIVING} and not exists lookup (select 1 from ending_runs e where e.key = r.key) limit ?`,
  },
  {
    statement: 'A run is active, or being revived, or has a time at which it ended.',
    offenders: `select 'run ' || r.id as name from runs r
      where (r.state in (${RUN_STATE.RUN_STARTED}, ${REVIVING})) <> (r.completed_at_ms is null) limit ?`,
  },
  {
    statement: 'Every endpoint belongs to a URL group, and every URL group has one.',
    offenders: `select 'URL group ' || g.name as name from url_groups g
      where not exists lookup (select 1 from url_group_endpoints e
        where e.project_id = g.project_id and e.group_name = g.name)
      union all select 'URL group ' || e.group_name as name from url_group_endpoints e
      where not exists lookup (select 1 from url_groups g
        where g.project_id = e.project_id and g.name = e.group_name) limit ?`,
  },
];

/** Rows that are named for each invariant. */
const NAMED_MAX = 10;

export interface Finding {
  statement: string;
  /** Names of the first rows that violate the invariant; empty if there are none. */
  offenders: string[];
}

/** One finding for each invariant that can be checked now, all from one snapshot. */
export async function checkInvariants(queries: Queries, { isExpiring = false } = {}): Promise<Finding[]> {
  const findings: Finding[] = [];
  for (const { statement, offenders, isPausedByExpiry } of INVARIANTS) {
    if (isExpiring && isPausedByExpiry) continue;
    const rows = await queries.query<{ name: string }>(offenders, [NAMED_MAX]);
    findings.push({ statement, offenders: rows.map(({ name }) => name) });
  }
  return findings;
}

/** The counts that an operator wants to know of a store first. */
export interface Census {
  unfinished: number;
  inFlight: number;
  dead: number;
  queues: number;
  flowKeys: number;
  activeRuns: number;
}

export async function readCensus(queries: Queries): Promise<Census> {
  const count = async (text: string): Promise<number> => {
    const [row] = await queries.query<{ count: number }>(text);
    return row?.count ?? 0;
  };
  return {
    unfinished: await count('select count(*) as count from messages'),
    inFlight: await count('select count(*) as count from messages where claim_token is not null'),
    dead: await count('select count(*) as count from dead'),
    queues: await count('select count(*) as count from queues where deleted = 0'),
    flowKeys: await count('select count(*) as count from flow_keys'),
    activeRuns: await count(`select count(*) as count from runs where state = ${RUN_STATE.RUN_STARTED}`),
  };
}
