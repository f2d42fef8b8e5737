/** Collects the operations that the files of this folder export, and runs commands and reads by their names. */

import * as cells from '../../cells/store/directory.ts';
import * as moves from '../../cells/store/moves.ts';
import type { ProjectId } from '../../engine/model.ts';
import { ProjectAway } from '../../engine/store-errors.ts';
import type { Driver, Queries } from '../driver.ts';

import * as allProjects from './accounts/projects.ts';
import * as tokens from './accounts/tokens.ts';
import * as waitingBacklogs from './claims/backlogs.ts';
import * as claim from './claims/claim.ts';
import * as release from './claims/release.ts';
import * as failedRuns from './dead-runs/dead-runs.ts';
import * as failureCallbacks from './dead-runs/failure-callbacks.ts';
import * as runRetry from './dead-runs/retry.ts';
import * as flowKeys from './lanes/flow-commands.ts';
import * as projectGate from './lanes/project-gate.ts';
import * as queues from './lanes/queue-commands.ts';
import { isReadableHere } from './locking/placement.ts';
import * as liveLogs from './logs/live-logs.ts';
import type { WriteContext } from './logs/log-writer.ts';
import * as messageLogs from './logs/logs.ts';
import * as accept from './messages/accept.ts';
import * as cancel from './messages/cancel.ts';
import * as checkpoint from './messages/checkpoint.ts';
import * as dead from './messages/dead.ts';
import * as find from './messages/find.ts';
import * as makeDue from './messages/make-due.ts';
import * as parked from './messages/parked.ts';
import * as settle from './messages/settle.ts';
import * as unfinished from './messages/unfinished.ts';
import type { CommandClass, MergedWrite, Write, WriteTraits } from './operation.ts';
import * as unfinishedWork from './reports/backlog.ts';
import * as minutes from './reports/minutes.ts';
import * as operatorEvents from './reports/operator-events.ts';
import * as storage from './reports/storage.ts';
import * as totals from './reports/totals.ts';
import * as retention from './retention.ts';
import * as histories from './run-logs/run-histories.ts';
import * as runEvents from './run-logs/run-logs.ts';
import * as activeRuns from './runs/active.ts';
import * as endings from './runs/end.ts';
import * as anyRuns from './runs/find.ts';
import * as schedules from './schedules/schedules.ts';
import * as urlGroups from './url-groups.ts';
import * as allWaiters from './waiters/all-waiters.ts';
import * as pendingEvents from './waiters/pending-events.ts';
import * as register from './waiters/register.ts';
import * as registered from './waiters/waiters.ts';
import * as numbers from './workers/numbers.ts';
import * as workers from './workers/workers.ts';

const messages = {
  ...accept,
  ...settle,
  ...checkpoint,
  ...cancel,
  ...claim,
  ...find,
  ...makeDue,
  ...numbers,
  ...release,
  ...unfinished,
  ...waitingBacklogs,
};
const runs = { ...endings, ...parked, ...anyRuns };
const backlog = { ...unfinishedWork, ...storage, ...totals };
const logs = { ...messageLogs, ...liveLogs };
const deadRuns = { ...activeRuns, ...failedRuns, ...failureCallbacks, ...runRetry };
const runLogs = { ...histories, ...runEvents };
const waiters = { ...allWaiters, ...pendingEvents, ...register, ...registered };
const keys = { ...flowKeys, ...projectGate };
const projects = { ...allProjects, ...tokens };

/**
 * The operations by subject. Merged operations (new messages, outcomes of attempts, checkpoints, ends of runs) each run
 * all of their commands in a batch together, and follow one another in the order of this object.
 */
export const OPERATIONS = {
  messages,
  runs,
  dead,
  backlog,
  logs,
  minutes,
  deadRuns,
  runLogs,
  waiters,
  schedules,
  retention,
  keys,
  queues,
  urlGroups,
  projects,
  cells,
  moves,
  workers,
  operatorEvents,
};

type Nouns = typeof OPERATIONS;

type Intersection<Union> = (Union extends unknown ? (each: Union) => void : never) extends (all: infer All) => void
  ? All
  : never;

type All = Intersection<{ [Noun in keyof Nouns]: OperationsIn<Nouns[Noun]> }[keyof Nouns]>;

/** The exports of `Files` that are operations. */
export type OperationsIn<Files> = {
  [M in keyof Files as Files[M] extends { kind: Kind } ? M : never]: Files[M];
};

const ALL: All = Object.assign({}, ...Object.values(OPERATIONS));

type Kind = 'single' | 'merged' | 'read' | 'paged';

type OfKind<K extends Kind> = {
  [M in keyof All as All[M] extends { kind: K } ? M : never]: All[M];
};

const MERGED = Object.entries<unknown>(ALL).filter(isMerged);

function isMerged(entry: [string, unknown]): entry is [string, MergedWrite<object, Result>] {
  const [, value] = entry;
  return typeof value === 'function' && 'kind' in value && value.kind === 'merged';
}

type Single = OfKind<'single'>;
type Merged = OfKind<'merged'>;
type ReadTable = OfKind<'read' | 'paged'>;

/** The arguments and the result of each command. */
export type Writes = {
  [M in keyof Single]: { args: Parameters<Single[M]>[1]; result: Awaited<ReturnType<Single[M]>> };
} & {
  [M in keyof Merged]: { args: Parameters<Merged[M]>[1][number]; result: Awaited<ReturnType<Merged[M]>>[number] };
};

export type WriteMethod = keyof Writes;

/** The result of any command. */
export type Result = Writes[WriteMethod]['result'];

export type WriteCommand = { [M in WriteMethod]: { method: M; args: Writes[M]['args'] } }[WriteMethod];

export type Reads = {
  [M in keyof ReadTable]: { args: Parameters<ReadTable[M]>[1]; result: Awaited<ReturnType<ReadTable[M]>> };
};

export type ReadMethod = keyof Reads;

// The casts below are needed because TypeScript cannot relate a name to its arguments after a lookup.

/** The traits of the operation of `command`. The functions among the traits take the arguments of `command`. */
export function traitsOf({ method }: WriteCommand): WriteTraits<object> {
  return ALL[method] as unknown as WriteTraits<object>;
}

/** The class of `command`, by which `BatchQueue` orders commands. */
export function classOf(command: WriteCommand): CommandClass {
  return traitsOf(command).class(command.args);
}

/**
 * Runs `commands`: first those of merged operations, all commands of an operation together, then the others one by one.
 * Returns the results in the order of `commands`.
 */
export async function runAll(
  context: WriteContext,
  commands: readonly WriteCommand[],
): Promise<{ kind: 'result'; result: Result }[]> {
  const results = new Map<WriteCommand, Result>();
  for (const [method, run] of MERGED) {
    const alike = commands.filter((command) => command.method === method);
    if (alike.length === 0) continue;
    const merged = await run(
      context,
      alike.map(({ args }) => args),
    );
    for (const [index, result] of merged.entries()) results.set(alike[index] as WriteCommand, result);
  }
  for (const command of commands) {
    if (results.has(command)) continue;
    const run = ALL[command.method] as unknown as Write<object, Result>;
    results.set(command, await run(context, command.args));
  }
  return commands.map((command) => ({ kind: 'result', result: results.get(command) as Result }));
}

export function isLongRead(method: ReadMethod): boolean {
  return ALL[method].isLong;
}

/**
 * Runs one read on its own snapshot. With `isGuarded`, projects can move between cells, and the read throws `ProjectAway`
 * if the project of its arguments is not in this cell.
 */
export async function runRead<M extends ReadMethod>(
  driver: Driver,
  method: M,
  args: Reads[M]['args'],
  { isGuarded = false }: { isGuarded?: boolean } = {},
): Promise<Reads[M]['result']> {
  const read = ALL[method] as unknown as (queries: Queries, args: unknown) => Promise<Reads[M]['result']>;
  const { projectId } = (args ?? {}) as { projectId?: ProjectId };
  if (!isGuarded || projectId === undefined || ALL[method].readsDirectory)
    return driver.read((queries) => read(queries, args));
  const [result, isHere] = await driver.read((queries) =>
    Promise.all([read(queries, args), isReadableHere(queries, projectId)]),
  );
  if (!isHere) throw new ProjectAway(projectId, true);
  return result;
}
