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
import type { WriteCommand } from '../batch.ts';
import type { Transaction } from '../driver.ts';
import type { ClaimArgs } from './claim.ts';
import { EXAMINED_MAX, LANES_MAX } from './claim-limits.ts';
import { projectsWithHeld } from './lanes/project-gate.ts';
import { MESSAGE_AT, type StoredNewMessage } from './rows.ts';

/** Whose shared state a transaction may touch. */
export interface Held {
  has(projectId: ProjectId): boolean;
}

/** With a single writer. */
export const EVERYTHING: Held = { has: () => true };

/** Locks what `commands` will touch; to be called before anything else. */
export async function lockFor(tx: Transaction, commands: readonly WriteCommand[]): Promise<Held> {
  const wanted = new Wanted();
  for (const command of commands) wanted.add(command);
  await wanted.lookUp(tx);
  return wanted.all ? await lockAll(tx) : await lockProjects(tx, wanted.projects);
}

async function lockAll(tx: Transaction): Promise<Held> {
  await tx.query('select id from projects order by id for update');
  return EVERYTHING;
}

async function lockProjects(tx: Transaction, projects: ReadonlySet<ProjectId>): Promise<Held> {
  if (projects.size > 0) {
    await tx.query('select id from projects where id in (??) order by id for update', [[...projects]]);
  }
  return projects;
}

/** The projects and messages that a batch touches, as far as its commands say, and then as the store says. */
class Wanted {
  readonly projects = new Set<ProjectId>();
  all = false;
  /** Messages that exist, to be changed or removed. */
  readonly #keys = new Set<number>();
  readonly #runs = new Set<number>();
  readonly #schedules = new Set<number>();
  readonly #claims: ClaimArgs[] = [];
  #isLimited = false;

  add(command: WriteCommand): void {
    switch (command.method) {
      case 'accept':
        return this.#addNew(command.args.messages, command.args.limits);
      case 'settle': {
        const { settlement, limits } = command.args;
        this.#noteLimits(limits);
        if (!settlement.isAlone || limits.parallelismMax > 0) this.#keys.add(settlement.key);
        for (const change of [settlement.change, settlement.changeIfCancelRequested]) {
          this.#addNew(change?.follows ?? [], limits);
        }
        return;
      }
      case 'endRuns':
        for (const { ending, follows } of command.args.endings) {
          this.#runs.add(ending.runKey);
          this.#addNew(follows, command.args.limits);
        }
        return;
      case 'claim':
        this.#claims.push(command.args);
        return;
      case 'release':
        for (const { key } of command.args.claims) this.#keys.add(key);
        this.#noteLimits(command.args.limits);
        return;
      case 'cancel':
        for (const key of command.args.keys) this.#keys.add(key);
        this.#noteLimits(command.args.limits);
        return;
      case 'changeSchedules':
        for (const { key } of command.args.changes) this.#schedules.add(key);
        return;
      case 'saveSchedule':
        this.projects.add(command.args.schedule.projectId);
        return;
      case 'addWaiter':
        this.projects.add(command.args.wait.projectId);
        return;
      case 'resolveWaiters':
        for (const { result } of command.args.resolutions) this.projects.add(projectOf(result));
        return;
      case 'releaseAll':
      case 'dropExpired':
        this.all = true;
        return;
      default:
        if ('projectId' in command.args) this.projects.add(command.args.projectId);
    }
  }

  /** What commands name only by a key: of these, what never changes is read, so it need not be locked. */
  async lookUp(tx: Transaction): Promise<void> {
    if (this.all) return;
    if (this.#keys.size > 0) {
      this.#addAll(await tx.query(projectsOf('messages', this.#isLimited ? '' : SHARES), [[...this.#keys]]));
    }
    if (this.#runs.size > 0) this.#addAll(await tx.query(projectsOf('runs'), [[...this.#runs]]));
    if (this.#schedules.size > 0) this.#addAll(await tx.query(projectsOf('schedules'), [[...this.#schedules]]));
    for (const claim of this.#claims) await this.#addClaimed(tx, claim);
  }

  /** What a claim finds that belongs to other projects than these stays where it is. */
  async #addClaimed(tx: Transaction, { request, limits, nowMs }: ClaimArgs): Promise<void> {
    for (const line of request.unpark) {
      const { projectId, origin } = readLine(line);
      if (this.projects.has(projectId)) continue;
      this.#addAll(
        await tx.query(
          `select distinct project_id from (select project_id, flow_key from messages
             where project_id = ? and origin = ? and claim_token is null and line = 1 order by due_at_ms, key limit ?) as first
           where ${limits.parallelismMax > 0 ? '1 = 1' : 'flow_key is not null'}`,
          [projectId, origin, request.limit + 1],
        ),
      );
    }
    if (!request.due) return;
    this.#addAll(
      await tx.query(
        `select distinct project_id from (select project_id from flow_keys where wake_at_ms <= ?
           order by wake_at_ms, project_id, key limit ?) as first`,
        [nowMs, LANES_MAX],
      ),
    );
    if (limits.parallelismMax === 0) return;
    for (const projectId of await projectsWithHeld(tx)) this.projects.add(projectId);
    this.#addAll(
      await tx.query(
        `select distinct project_id from (select project_id from messages
           where claim_token is null and line = 0 and due_at_ms <= ? order by due_at_ms, key limit ?) as first`,
        [nowMs, EXAMINED_MAX],
      ),
    );
  }

  #addNew(messages: readonly StoredNewMessage[], limits: StoreLimits): void {
    const isLimited = limits.parallelismMax > 0 || limits.messagesPerDayMax > 0;
    for (const message of messages) if (isLimited || sharesSomething(message)) this.projects.add(projectOf(message));
  }

  #noteLimits({ parallelismMax }: StoreLimits): void {
    if (parallelismMax > 0) this.#isLimited = true;
  }

  #addAll(rows: readonly { project_id: number }[]): void {
    for (const { project_id } of rows) this.projects.add(project_id);
  }
}

/** A message in a lane or of a run: it was so when it was saved, and none joins one later. */
const SHARES = '(queue_id is not null or flow_key is not null or run_key is not null)';

/** Of the rows with a list of keys. Their order keeps the planner from reading the projects' own indexes to the end. */
function projectsOf(table: 'messages' | 'runs' | 'schedules', condition = ''): string {
  const rows = `select project_id from ${table} where key in (??)${condition && ` and ${condition}`} order by key`;
  return `select distinct project_id from (${rows}) as found`;
}

function sharesSomething({ deduplication, queueName, flow, entry, run, message }: StoredNewMessage): boolean {
  if (deduplication !== undefined || queueName !== undefined || flow !== undefined) return true;
  return entry !== undefined || run !== undefined || message[MESSAGE_AT.run_key] !== null;
}

function projectOf({ message }: Pick<StoredNewMessage, 'message'>): ProjectId {
  return message[MESSAGE_AT.project_id] as ProjectId;
}
