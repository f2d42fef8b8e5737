/**
 * The locks of a batch where several transactions run concurrently.
 *
 * Messages that share nothing are protected by locks on their own rows. Lanes, runs, deduplication ids and budgets are
 * shared by messages. A batch that touches such shared state first locks the rows of its projects, in order of their ids,
 * before it reads anything. So the rest of the store may assume that a project's shared state has one writer. Rows of
 * messages are locked next: each command that names messages locks them in order of their keys. Transactions may still
 * deadlock, for example two cancels of many messages. The database detects a deadlock, and the transactions run again.
 */
import type { ProjectId } from '../../../engine/model.ts';
import type { StoreLimits } from '../../../engine/stores.ts';
import type { Transaction } from '../../driver.ts';
import { traitsOf, type WriteCommand } from '../all.ts';
import type { LockScope } from '../operation.ts';
import type { LockedProjects } from './locked-projects.ts';
import { ALL_HERE, PLACEMENT, type PlacementCheck } from './placement.ts';

/** Projects whose locks the batch does not wait for, because a hung worker may have them. */
export type Suspects = Pick<LockedProjects, 'has'>;

/** No suspects: the batch waits for all locks. */
export const NO_SUSPECTS: Suspects = { has: () => false };

/** The locks of a batch. */
export interface BatchLocks {
  locked: LockedProjects;
  /** Commands that cannot run now, because one of their projects is a suspect and locked by another transaction. */
  blocked: ReadonlyMap<WriteCommand, BlockedResult>;
}

export interface BlockedResult {
  kind: 'blocked';
  projectId: ProjectId;
}

const NONE_BLOCKED: BatchLocks['blocked'] = new Map();

/**
 * Locks the projects and rows that `commands` touch, and requires the projects to be placed in this cell. Must be called
 * before anything else in the transaction.
 */
export async function lockFor(
  tx: Transaction,
  commands: readonly WriteCommand[],
  limits: StoreLimits,
  suspects: Suspects = NO_SUSPECTS,
  placement: PlacementCheck = ALL_HERE,
): Promise<BatchLocks> {
  const scopes = commands.map((command) => scopeOf(command, limits));
  await resolveProjects(tx, scopes, limits);
  if (placement !== ALL_HERE) placement.requireFor(checkedProjects(commands, scopes));
  for (const { find, projects } of scopes) for (const projectId of (await find?.(tx)) ?? []) projects.add(projectId);
  if (suspects !== NO_SUSPECTS) return lockFreeProjects(tx, commands, scopes, suspects, placement);
  const projects = new Set(scopes.flatMap((each) => [...each.projects]));
  return { locked: placedHere(placement, projects, await lockProjects(tx, projects)), blocked: NONE_BLOCKED };
}

/**
 * The projects that each command writes to. Commands of accounts are left out, because the directory has the accounts of
 * all projects.
 */
function* checkedProjects(
  commands: readonly WriteCommand[],
  scopes: readonly ResolvedScope[],
): Generator<[WriteCommand, ProjectId[]]> {
  for (const [index, command] of commands.entries()) {
    const { projects = [], writes = [] } = scopes[index] ?? {};
    if (!traitsOf(command).changesAccounts) yield [command, [...projects, ...writes]];
  }
}

interface LockedRow {
  id: ProjectId;
  placement: number;
}

async function lockProjects(tx: Transaction, projects: Iterable<ProjectId>, rest = ''): Promise<LockedRow[]> {
  const ids = [...projects];
  if (ids.length === 0) return [];
  return tx.query(`select id, placement from projects where id in (??) order by id for no key update${rest}`, [ids]);
}

/** The locked projects that are placed in this cell. A batch may touch no other projects. */
function placedHere(
  placement: PlacementCheck,
  locked: ReadonlySet<ProjectId>,
  rows: readonly LockedRow[],
): ReadonlySet<ProjectId> {
  if (placement === ALL_HERE) return locked;
  return new Set(rows.filter(({ placement }) => placement === PLACEMENT.here).map(({ id }) => id));
}

/**
 * Locks all projects that are not suspects, and those suspects whose lock is free. A command that needs a locked suspect
 * is blocked, except a claim, which skips the messages of that project.
 */
async function lockFreeProjects(
  tx: Transaction,
  commands: readonly WriteCommand[],
  scopes: readonly ResolvedScope[],
  suspects: Suspects,
  placement: PlacementCheck,
): Promise<BatchLocks> {
  const existing = (await tx.query<{ id: ProjectId }>('select id from projects')).map(({ id }) => id);
  const wanted = new Set(scopes.flatMap(({ projects }) => [...projects]));
  const locked = new Set([...wanted].filter((id) => !suspects.has(id)));
  const rows = await lockProjects(tx, locked);
  const wantedSuspects = existing.filter((id) => wanted.has(id) && suspects.has(id));
  const free = await lockProjects(tx, wantedSuspects, ' skip locked');
  for (const { id } of free) locked.add(id);
  const blocked = new Map<WriteCommand, BlockedResult>();
  for (const [index, command] of commands.entries()) {
    const { projects = [], skipsLocked } = scopes[index] ?? {};
    const missing = [...projects].find((id) => !locked.has(id));
    if (missing !== undefined && !skipsLocked) blocked.set(command, { kind: 'blocked', projectId: missing });
  }
  return { locked: placedHere(placement, locked, [...rows, ...free]), blocked };
}

/** The projects that a command touches: those that the command names, and those of the rows that it names by key. */
interface ResolvedScope extends Omit<LockScope, 'projects'> {
  projects: Set<ProjectId>;
}

function scopeOf(command: WriteCommand, limits: StoreLimits): ResolvedScope {
  const touched = traitsOf(command).touches(command.args, limits);
  return { ...touched, projects: new Set(touched.projects) };
}

/**
 * Finds the projects of rows that commands name only by key. The project of a key never changes, so this needs no lock.
 */
async function resolveProjects(tx: Transaction, scopes: readonly ResolvedScope[], limits: StoreLimits): Promise<void> {
  const condition = limits.parallelismMax > 0 ? '' : HAS_SHARED_STATE;
  await addProjects(tx, scopes, 'messages', condition);
  await addProjects(tx, scopes, 'schedules');
}

/** Selects messages of lanes and runs: only these need the lock. A saved message never joins a lane or run later. */
const HAS_SHARED_STATE = ' and (queue_id is not null or flow_key is not null or run_key is not null)';

async function addProjects(
  tx: Transaction,
  scopes: readonly ResolvedScope[],
  table: 'messages' | 'schedules',
  condition = '',
): Promise<void> {
  const keys = new Set(scopes.flatMap((each) => each[table] ?? []));
  if (keys.size === 0) return;
  const rows = await tx.query<{ key: number; project_id: ProjectId }>(
    // The order keeps the planner from reading whole indexes of projects.
    `select key, project_id from ${table} where key in (??)${condition} order by key`,
    [[...keys]],
  );
  const projectByKey = new Map(rows.map(({ key, project_id }) => [key, project_id]));
  for (const each of scopes) {
    for (const key of each[table] ?? []) {
      const projectId = projectByKey.get(key);
      if (projectId !== undefined) each.projects.add(projectId);
    }
  }
}
