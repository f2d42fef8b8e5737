/** Checks, in the middle of a simulation, that the database is consistent and each active run can continue. */
import { checkInvariants } from '../../src/store/operations/reports/invariants.ts';
import type { World } from './world.ts';

/** P14: an active run has a message, a waiter, or a run that it waits for. */
const STRANDED = `select r.id from runs r where r.state = 1
  and not exists (select 1 from messages m where m.run_key = r.key)
  and not exists (select 1 from waiters w where w.run_key = r.key)
  and not exists (select 1 from invocations i join runs child on child.key = i.run_key
    where i.parent_key = r.key and child.state = 1)`;

/** P2: an ended run has no messages except those in flight, those being cancelled, and its failure callback. */
const HAUNTED = `select r.id, m.key from runs r join messages m on m.run_key = r.key
  where r.state <> 1 and m.claim_token is null and (r.failure_key is null or r.failure_key <> m.key)
    and not exists (select 1 from ending_runs e where e.key = r.key)`;

/** P17: a run with a pending event has no wait for that event. */
const MISSED = `select r.id, w.key from waiters w join runs r on r.key = w.run_key
  where exists (select 1 from pending_events m where m.run_key = w.run_key and m.event_id = w.event_id)`;

export async function inspectRuns(world: World): Promise<void> {
  // While a project is being moved, no cell has all of its rows.
  if ((await world.count('select count(*) as count from project_moves')) > 0) return;
  await world.readAll(async (queries) => {
    for (const { statement, offenders } of await checkInvariants(queries)) {
      if (offenders.length > 0) world.violate('P3', `${statement} But: ${offenders.join(', ')}`);
    }
    for (const { id } of await queries.query<{ id: string }>(STRANDED)) {
      world.violate('P14', `nothing will move run ${id}`);
    }
    for (const { id, key } of await queries.query<{ id: string; key: number }>(MISSED)) {
      world.violate('P17', `wait ${key} of run ${id} waits for what is saved for it`);
    }
    for (const { id, key } of await queries.query<{ id: string; key: number }>(HAUNTED)) {
      world.violate('P2', `message ${key} of the ended run ${id} still waits`);
    }
  });
}
