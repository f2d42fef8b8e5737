/**
 * What must a batch have for itself where several transactions run at once?
 *
 * Messages that share nothing are protected by locks on their own rows. Whatever touches what messages share (lanes, runs,
 * deduplication ids, budgets) first locks the rows of its projects, in order of their ids, before it reads anything: so the
 * rest of the store may suppose that a project's shared state has one writer. Rows of messages come next: each command that
 * names messages locks them in order of their keys. Transactions that wait for each other in a circle all the same, as two
 * cancels of many may, are found out by the database and done again.
 */
import type { ProjectId } from '../../engine/model.ts';
import type { StoreLimits } from '../../engine/stores.ts';
import type { Transaction } from '../driver.ts';
import { traitsOf, type WriteCommand } from './all.ts';
import type { LockedProjects } from './locked-projects.ts';
import type { Touched } from './operation.ts';

/** Whose locks are not waited for, because somebody may be holding them who does not let go. */
export type Suspects = LockedProjects;

/** Nobody: all are waited for. */
export const NOBODY: Suspects = { has: () => false };

/** What a batch has for itself. */
export interface Locked {
  locked: LockedProjects;
  /** Commands that cannot be carried out now, since somebody else has this project of theirs. Nothing but of suspects. */
  blocked: ReadonlyMap<WriteCommand, Blocked>;
}

export interface Blocked {
  kind: 'blocked';
  projectId: ProjectId;
}

const NONE_BLOCKED: Locked['blocked'] = new Map();

/** Locks what `commands` will touch; to be called before anything else. */
export async function lockFor(
  tx: Transaction,
  commands: readonly WriteCommand[],
  limits: StoreLimits,
  suspects: Suspects = NOBODY,
): Promise<Locked> {
  const needs = commands.map((command) => needsOf(command, limits));
  await lookUp(tx, needs, limits);
  if (suspects !== NOBODY) return lockWhatIsFree(tx, commands, needs, suspects);
  const projects = new Set(needs.flatMap((each) => [...each.projects]));
  await lockProjects(tx, projects);
  return { locked: projects, blocked: NONE_BLOCKED };
}

async function lockProjects(tx: Transaction, projects: ReadonlySet<ProjectId>): Promise<void> {
  if (projects.size === 0) return;
  await tx.query('select id from projects where id in (??) order by id for update', [[...projects]]);
}

/**
 * Locks those that are not suspected as always, and of the suspects those that nobody has. A command that needs one that
 * somebody has is blocked; a claim does without, and leaves what belongs to it where it is.
 */
async function lockWhatIsFree(
  tx: Transaction,
  commands: readonly WriteCommand[],
  needs: readonly Needs[],
  suspects: Suspects,
): Promise<Locked> {
  const existing = (await tx.query<{ id: ProjectId }>('select id from projects')).map(({ id }) => id);
  const wanted = new Set(needs.flatMap(({ projects }) => [...projects]));
  const locked = new Set([...wanted].filter((id) => !suspects.has(id)));
  await lockProjects(tx, locked);
  const doubtful = existing.filter((id) => wanted.has(id) && suspects.has(id));
  const free = await tx.query<{ id: ProjectId }>(
    'select id from projects where id in (??) order by id for update skip locked',
    [doubtful],
  );
  for (const { id } of free) locked.add(id);
  const blocked = new Map<WriteCommand, Blocked>();
  for (const [index, command] of commands.entries()) {
    const { projects = [], isChoosy } = needs[index] ?? {};
    const missing = [...projects].find((id) => !locked.has(id));
    if (missing !== undefined && !isChoosy) blocked.set(command, { kind: 'blocked', projectId: missing });
  }
  return { locked, blocked };
}

/** What a command touches, with the projects that it names and then those that the store adds. */
interface Needs extends Omit<Touched, 'projects'> {
  projects: Set<ProjectId>;
}

function needsOf(command: WriteCommand, limits: StoreLimits): Needs {
  const touched = traitsOf(command).touches(command.args, limits);
  return { ...touched, projects: new Set(touched.projects) };
}

/** What commands name only by a key: of these, what never changes is read, so it need not be locked. */
async function lookUp(tx: Transaction, needs: readonly Needs[], limits: StoreLimits): Promise<void> {
  const condition = limits.parallelismMax > 0 ? '' : SHARES;
  await addProjects(tx, needs, 'messages', condition);
  await addProjects(tx, needs, 'runs');
  await addProjects(tx, needs, 'schedules');
  for (const { find, projects } of needs) for (const projectId of (await find?.(tx)) ?? []) projects.add(projectId);
}

/** A message in a lane or of a run: it was so when it was saved, and none joins one later. */
const SHARES = ' and (queue_id is not null or flow_key is not null or run_key is not null)';

async function addProjects(
  tx: Transaction,
  needs: readonly Needs[],
  table: 'messages' | 'runs' | 'schedules',
  condition = '',
): Promise<void> {
  const keys = new Set(needs.flatMap((each) => each[table] ?? []));
  if (keys.size === 0) return;
  const rows = await tx.query<{ key: number; project_id: ProjectId }>(
    // The order keeps the planner from reading the projects' own indexes to the end.
    `select key, project_id from ${table} where key in (??)${condition} order by key`,
    [[...keys]],
  );
  const projectByKey = new Map(rows.map(({ key, project_id }) => [key, project_id]));
  for (const each of needs) {
    for (const key of each[table] ?? []) {
      const projectId = projectByKey.get(key);
      if (projectId !== undefined) each.projects.add(projectId);
    }
  }
}
