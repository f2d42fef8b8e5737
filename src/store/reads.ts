/** What is read without taking part in a transaction of the writer. All of it is plain data. */
import type { Driver, Queries } from './driver.ts';
import { parkedLines } from './sql/claim.ts';
import { countDead, deadAt, listDead } from './sql/dead.ts';
import { find, findCandidates, findLive } from './sql/find.ts';
import { findKey, listKeys } from './sql/lanes/flow-commands.ts';
import { countInFlight } from './sql/lanes/project-gate.ts';
import { findQueue, listQueues } from './sql/lanes/queue-commands.ts';
import { listLogs } from './sql/logs.ts';
import type { Position } from './sql/page.ts';
import { listProjects, listTokens, readAccounts, signingKeys } from './sql/projects.ts';
import { activeRunKeys } from './sql/runs/active.ts';
import { deadRunsAt, findFailureCallback, listDeadRuns, outlineJournal } from './sql/runs/dead-runs.ts';
import { findActiveRun, findRecords, findRun, journalBytes, readJournal } from './sql/runs/find.ts';
import { listHistories } from './sql/runs/run-histories.ts';
import { listRunEvents } from './sql/runs/run-logs.ts';
import { dueSchedules, findSchedule, listSchedules, strandedSchedules } from './sql/schedules.ts';
import { findUrlGroup, listUrlGroups } from './sql/url-groups.ts';
import { nextMail } from './sql/waiters/mail.ts';
import { dueWaiters, listWaiters } from './sql/waiters/waiters.ts';
import { claimsOf, orphanedClaims } from './sql/workers.ts';

const READS = {
  find,
  findLive,
  findCandidates,
  parkedLines,
  countDead,
  listDead,
  deadAt: (queries: Queries, args: { projectId: number; places: Position[] }) =>
    deadAt(queries, args.projectId, args.places),
  listLogs,
  listRunEvents,
  listHistories,
  listProjects: (queries: Queries, _args: Record<never, never>) => listProjects(queries),
  listTokens: (queries: Queries, _args: Record<never, never>) => listTokens(queries),
  readAccounts: (queries: Queries, _args: Record<never, never>) => readAccounts(queries),
  signingKeys,
  activeRunKeys,
  listDeadRuns,
  deadRunsAt,
  findFailureCallback,
  outlineJournal,
  findUrlGroup,
  listUrlGroups,
  findSchedule,
  listSchedules,
  dueSchedules,
  strandedSchedules,
  findActiveRun,
  findRun,
  findRecords,
  journalBytes,
  readJournal,
  nextMail,
  listWaiters,
  dueWaiters,
  findQueue,
  listQueues,
  findKey,
  listKeys,
  countInFlight: (queries: Queries, args: { projectId: number }) => countInFlight(queries, args.projectId),
  orphanedClaims,
  claimsOf,
  ping: (queries: Queries, _args: Record<never, never>) => queries.query('select 1 as one'),
};

type Table = typeof READS;

export type Reads = {
  [M in keyof Table]: { args: Parameters<Table[M]>[1]; answer: Awaited<ReturnType<Table[M]>> };
};

export type ReadMethod = keyof Reads;

/** Those that may look at many rows, were it only to count who waits, or carry many bodies; the others look up a row or two. */
export const LONG_READS: ReadonlySet<ReadMethod> = new Set<ReadMethod>([
  'findCandidates',
  'findLive',
  'listDead',
  'deadAt',
  'listLogs',
  'activeRunKeys',
  'listDeadRuns',
  'deadRunsAt',
  'outlineJournal',
  'listRunEvents',
  'listHistories',
  'listUrlGroups',
  'listSchedules',
  'readJournal',
  'listWaiters',
  'findQueue',
  'listQueues',
  'findKey',
  'listKeys',
]);

/** Runs one read on its own snapshot. */
export function runRead<M extends ReadMethod>(
  driver: Driver,
  method: M,
  args: Reads[M]['args'],
): Promise<Reads[M]['answer']> {
  // TypeScript cannot see that the method and its arguments belong together once they are looked up by name.
  const read = READS[method] as (queries: Queries, args: unknown) => Promise<Reads[M]['answer']>;
  return driver.read((queries) => read(queries, args));
}
