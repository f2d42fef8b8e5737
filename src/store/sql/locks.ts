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
import { readLine } from '../../engine/origin-line.ts';
import type { StoreLimits } from '../../engine/stores.ts';
import type { Transaction } from '../driver.ts';
import type { WriteCommand } from '../writes.ts';
import type { ClaimArgs } from './claim.ts';
import { EXAMINED_MAX, LANES_MAX } from './claim-limits.ts';
import type { Held } from './held.ts';
import { LINE } from './lanes/lines.ts';
import { projectsWithHeld } from './lanes/project-gate.ts';
import { type DropExpiredArgs, projectsOfExpired } from './retention.ts';
import { MESSAGE_AT, type StoredNewMessage } from './rows.ts';

/** Whose locks are not waited for, because somebody may be holding them who does not let go. */
export type Suspects = Held;

/** Nobody: all are waited for. */
export const NOBODY: Suspects = { has: () => false };

/** What a batch has for itself. */
export interface Locked {
  held: Held;
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
  const wishes = commands.map((command) => wishOf(command, limits));
  await lookUp(tx, wishes, limits);
  if (suspects !== NOBODY) return lockWhatIsFree(tx, commands, wishes, suspects);
  const projects = new Set(wishes.flatMap((wish) => [...wish.projects]));
  await lockProjects(tx, projects);
  return { held: projects, blocked: NONE_BLOCKED };
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
  wishes: readonly Wish[],
  suspects: Suspects,
): Promise<Locked> {
  const existing = (await tx.query<{ id: ProjectId }>('select id from projects')).map(({ id }) => id);
  const wanted = new Set(wishes.flatMap(({ projects }) => [...projects]));
  const held = new Set([...wanted].filter((id) => !suspects.has(id)));
  await lockProjects(tx, held);
  const doubtful = existing.filter((id) => wanted.has(id) && suspects.has(id));
  const free = await tx.query<{ id: ProjectId }>(
    'select id from projects where id in (??) order by id for update skip locked',
    [doubtful],
  );
  for (const { id } of free) held.add(id);
  const blocked = new Map<WriteCommand, Blocked>();
  for (const [index, command] of commands.entries()) {
    const { projects = [], isChoosy } = wishes[index] ?? {};
    const missing = [...projects].find((id) => !held.has(id));
    if (missing !== undefined && !isChoosy) blocked.set(command, { kind: 'blocked', projectId: missing });
  }
  return { held, blocked };
}

/** The projects and messages that a command touches, as far as it says itself, and then as the store says. */
interface Wish {
  projects: Set<ProjectId>;
  /** It leaves alone what is not locked: a claim. */
  isChoosy: boolean;
  /** Messages that exist, to be changed or removed. */
  keys: number[];
  runs: number[];
  schedules: number[];
  claim?: ClaimArgs;
  retention?: DropExpiredArgs;
}

function wishOf(command: WriteCommand, limits: StoreLimits): Wish {
  const wish: Wish = {
    projects: new Set(),
    isChoosy: false,
    keys: [],
    runs: [],
    schedules: [],
  };
  switch (command.method) {
    case 'accept':
      addNew(wish, command.args.messages, limits);
      return wish;
    case 'settle': {
      const { settlement } = command.args;
      if (!settlement.isAlone || limits.parallelismMax > 0) wish.keys.push(settlement.key);
      for (const change of [settlement.change, settlement.changeIfCancelRequested]) {
        addNew(wish, change?.follows ?? [], limits);
      }
      return wish;
    }
    case 'endRuns':
      for (const { ending, follows } of command.args.endings) {
        wish.runs.push(ending.runKey);
        addNew(wish, follows, limits);
      }
      return wish;
    case 'claim':
      return { ...wish, isChoosy: true, claim: command.args };
    case 'release':
      wish.keys = command.args.claims.map(({ key }) => key);
      return wish;
    case 'cancel':
      wish.keys = command.args.keys;
      return wish;
    case 'changeSchedules':
      wish.schedules = command.args.changes.map(({ key }) => key);
      return wish;
    case 'saveSchedule':
      wish.projects.add(command.args.schedule.projectId);
      return wish;
    case 'addWaiter':
      wish.projects.add(command.args.wait.projectId);
      return wish;
    case 'resolveWaiters':
      for (const { result } of command.args.resolutions) wish.projects.add(projectOf(result));
      return wish;
    case 'dropExpired':
      return { ...wish, retention: command.args };
    default:
      if ('projectId' in command.args) wish.projects.add(command.args.projectId);
      return wish;
  }
}

function addNew(wish: Wish, messages: readonly StoredNewMessage[], limits: StoreLimits): void {
  const isLimited = limits.parallelismMax > 0 || limits.messagesPerDayMax > 0;
  for (const message of messages) if (isLimited || sharesSomething(message)) wish.projects.add(projectOf(message));
}

/** What commands name only by a key: of these, what never changes is read, so it need not be locked. */
async function lookUp(tx: Transaction, wishes: readonly Wish[], limits: StoreLimits): Promise<void> {
  const condition = limits.parallelismMax > 0 ? '' : SHARES;
  await addProjects(tx, wishes, 'keys', projectsOf('messages', condition));
  await addProjects(tx, wishes, 'runs', projectsOf('runs'));
  await addProjects(tx, wishes, 'schedules', projectsOf('schedules'));
  for (const { claim, retention, projects } of wishes) {
    if (claim) await addClaimed(tx, projects, claim, limits);
    if (retention) for (const projectId of await projectsOfExpired(tx, retention)) projects.add(projectId);
  }
}

async function addProjects(
  tx: Transaction,
  wishes: readonly Wish[],
  named: 'keys' | 'runs' | 'schedules',
  text: string,
): Promise<void> {
  const keys = new Set(wishes.flatMap((wish) => wish[named]));
  if (keys.size === 0) return;
  const rows = await tx.query<{ key: number; project_id: ProjectId }>(text, [[...keys]]);
  const projectByKey = new Map(rows.map(({ key, project_id }) => [key, project_id]));
  for (const wish of wishes) {
    for (const key of wish[named]) {
      const projectId = projectByKey.get(key);
      if (projectId !== undefined) wish.projects.add(projectId);
    }
  }
}

/** What a claim finds that belongs to other projects than these stays where it is. */
async function addClaimed(
  tx: Transaction,
  projects: Set<ProjectId>,
  { request, nowMs }: ClaimArgs,
  limits: StoreLimits,
): Promise<void> {
  const addAll = (rows: readonly { project_id: number }[]): void => {
    for (const { project_id } of rows) projects.add(project_id);
  };
  for (const line of request.unpark) {
    const { projectId, origin } = readLine(line);
    if (projects.has(projectId)) continue;
    addAll(
      await tx.query(
        `select distinct project_id from (select project_id, flow_key from messages
           where project_id = ? and origin = ? and claim_token is null and line = ${LINE.origin} order by due_at_ms, key limit ?) as first
         where ${limits.parallelismMax > 0 ? '1 = 1' : 'flow_key is not null'}`,
        [projectId, origin, request.limit + 1],
      ),
    );
  }
  if (!request.due) return;
  addAll(
    await tx.query(
      `select distinct project_id from (select project_id from flow_keys where wake_at_ms <= ?
         order by wake_at_ms, project_id, key limit ?) as first`,
      [nowMs, LANES_MAX],
    ),
  );
  if (limits.parallelismMax === 0) return;
  for (const projectId of await projectsWithHeld(tx)) projects.add(projectId);
  addAll(
    await tx.query(
      `select distinct project_id from (select project_id from messages
         where claim_token is null and line = ${LINE.due} and due_at_ms <= ? order by due_at_ms, key limit ?) as first`,
      [nowMs, EXAMINED_MAX],
    ),
  );
}

/** A message in a lane or of a run: it was so when it was saved, and none joins one later. */
const SHARES = '(queue_id is not null or flow_key is not null or run_key is not null)';

/** Of the rows with a list of keys. Their order keeps the planner from reading the projects' own indexes to the end. */
function projectsOf(table: 'messages' | 'runs' | 'schedules', condition = ''): string {
  return `select key, project_id from ${table} where key in (??)${condition && ` and ${condition}`} order by key`;
}

function sharesSomething({ deduplication, queueName, flow, message }: StoredNewMessage): boolean {
  if (deduplication !== undefined || queueName !== undefined || flow !== undefined) return true;
  // What begins a run, or has an entry in its journal, is a message of it.
  return message[MESSAGE_AT.run_key] !== null;
}

function projectOf({ message }: Pick<StoredNewMessage, 'message'>): ProjectId {
  return message[MESSAGE_AT.project_id] as ProjectId;
}
