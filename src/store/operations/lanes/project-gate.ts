/**
 * May a project start another attempt, when all its attempts together are limited (contract M 16.8)?
 *
 * A message that it may not start waits in its line. Every change that lowers the number of attempts releases the first
 * messages of the line, and makes a claim due. That claim releases more while there is room, because messages released
 * before may have found another lane closed. So when a project has room and a line, a claim is always due.
 */
import type { ProjectId } from '../../../engine/model.ts';
import type { Queries, SqlValue, Transaction } from '../../driver.ts';
import { read } from '../operation.ts';
import { WAIT_STATE, waitStateBehindQueue } from './wait-states.ts';

/** The most messages that leave the lines of projects in one transaction. */
const RELEASED_MAX = 64;

export class ProjectGate {
  readonly #queries: Queries;
  /** 0: not limited. */
  readonly #parallelismMax: number;
  readonly #inFlight = new Map<ProjectId, number>();
  readonly #projectsWithHeld = new Set<ProjectId>();

  constructor(queries: Queries, parallelismMax: number) {
    this.#queries = queries;
    this.#parallelismMax = parallelismMax;
  }

  get isLimited(): boolean {
    return this.#parallelismMax > 0;
  }

  /** Counts the attempts in flight of those projects that were not counted yet. */
  async load(projectIds: Iterable<ProjectId>): Promise<void> {
    if (!this.isLimited) return;
    for (const projectId of new Set(projectIds)) {
      if (this.#inFlight.has(projectId)) continue;
      this.#inFlight.set(projectId, await countInFlight(this.#queries, { projectId }));
      if (await isHeld(this.#queries, projectId)) this.#projectsWithHeld.add(projectId);
    }
  }

  /** How many more attempts may start. The project must have been loaded. */
  roomOf(projectId: ProjectId): number {
    if (!this.isLimited) return Infinity;
    const inFlight = this.#inFlight.get(projectId);
    if (inFlight === undefined) throw new Error(`the attempts of project ${projectId} were not counted`);
    return Math.max(0, this.#parallelismMax - inFlight);
  }

  /** Whether messages wait in the project's line: another one goes behind them. */
  hasHeld(projectId: ProjectId): boolean {
    return this.#projectsWithHeld.has(projectId);
  }

  start(projectId: ProjectId): void {
    const inFlight = this.#inFlight.get(projectId);
    if (inFlight !== undefined) this.#inFlight.set(projectId, inFlight + 1);
  }
}

/** Attempts of the project in flight, of all workers. */
export const countInFlight = read(
  async (queries: Queries, { projectId }: { projectId: ProjectId }): Promise<number> => {
    const [row] = await queries.query<{ count: number }>(
      'select count(*) as count from messages where project_id = ? and claim_token is not null',
      [projectId],
    );
    return row?.count ?? 0;
  },
);

async function isHeld(queries: Queries, projectId: ProjectId): Promise<boolean> {
  const rows = await queries.query(
    `select key from messages where project_id = ? and claim_token is null and wait_state = ${WAIT_STATE.project} limit 1`,
    [projectId],
  );
  return rows.length > 0;
}

/** Projects whose line has messages. Each takes one step in the index, however many of its messages wait. */
export async function projectsWithHeld(queries: Queries): Promise<ProjectId[]> {
  const projectIds: ProjectId[] = [];
  let last = -1;
  while (true) {
    const [row] = await queries.query<{ project_id: number }>(
      `select project_id from messages where claim_token is null and wait_state = ${WAIT_STATE.project} and project_id > ? order by project_id limit 1`,
      [last],
    );
    if (!row) return projectIds;
    projectIds.push(row.project_id);
    last = row.project_id;
  }
}

/** Messages that left the line of their project because it may start attempts again. */
export interface SentOn {
  key: number;
  project_id: number;
  due_at_ms: number;
  flow_key: string | null;
}

/** Releases as many messages as the projects have room for. They are checked again when they are claimed. */
export async function releaseHeld(
  tx: Transaction,
  gate: ProjectGate,
  projectIds: Iterable<ProjectId>,
): Promise<SentOn[]> {
  const sentOn: SentOn[] = [];
  if (!gate.isLimited) return sentOn;
  await gate.load(projectIds);
  for (const projectId of new Set(projectIds)) {
    const room = Math.min(gate.roomOf(projectId), RELEASED_MAX);
    if (room === 0) continue;
    sentOn.push(
      ...(await tx.query<SentOn>(
        `select key, project_id, due_at_ms, flow_key from messages
         where project_id = ? and claim_token is null and wait_state = ${WAIT_STATE.project} order by due_at_ms, key limit ?`,
        [projectId, room],
      )),
    );
  }
  await tx.updateMany(
    'messages',
    'key',
    ['wait_state'],
    sentOn.map(({ key, flow_key }): SqlValue[] => [key, waitStateBehindQueue(flow_key)]),
  );
  return sentOn;
}
