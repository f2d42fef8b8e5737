/**
 * The limit of concurrent attempts of a project (contract M 16.8).
 *
 * Messages over the limit wait for their project. Every change that lowers the number of attempts releases the first of
 * these messages and makes a claim due. The claim releases more messages while the project has capacity, because a
 * released message may have to wait for another lane. So when a project has capacity and waiting messages, a claim is
 * always due.
 */
import type { ProjectId } from '../../../engine/model.ts';
import type { Queries, SqlValue, Transaction } from '../../driver.ts';
import { read } from '../operation.ts';
import { WAIT_STATE, waitStateBehindQueue } from './wait-states.ts';

/** The most messages that one transaction releases for a project. */
const RELEASED_MAX = 64;

export class ProjectGate {
  readonly #queries: Queries;
  /** 0: not limited. */
  readonly #parallelismMax: number;
  readonly #inFlight = new Map<ProjectId, number>();
  readonly #projectsWithWaiting = new Set<ProjectId>();

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
      if (await hasWaitingMessage(this.#queries, projectId)) this.#projectsWithWaiting.add(projectId);
    }
  }

  /** The number of attempts that may still start. The project must have been loaded. */
  capacityOf(projectId: ProjectId): number {
    if (!this.isLimited) return Infinity;
    const inFlight = this.#inFlight.get(projectId);
    if (inFlight === undefined) throw new Error(`the attempts of project ${projectId} were not counted`);
    return Math.max(0, this.#parallelismMax - inFlight);
  }

  /** Whether messages wait for the project; a new message queues behind them. */
  hasWaiting(projectId: ProjectId): boolean {
    return this.#projectsWithWaiting.has(projectId);
  }

  start(projectId: ProjectId): void {
    const inFlight = this.#inFlight.get(projectId);
    if (inFlight !== undefined) this.#inFlight.set(projectId, inFlight + 1);
  }
}

/** The number of attempts of the project that are in flight, on all workers. */
export const countInFlight = read(
  async (queries: Queries, { projectId }: { projectId: ProjectId }): Promise<number> => {
    const [row] = await queries.query<{ count: number }>(
      'select count(*) as count from messages where project_id = ? and claim_token is not null',
      [projectId],
    );
    return row?.count ?? 0;
  },
);

async function hasWaitingMessage(queries: Queries, projectId: ProjectId): Promise<boolean> {
  const rows = await queries.query(
    `select key from messages where project_id = ? and claim_token is null and wait_state = ${WAIT_STATE.project} limit 1`,
    [projectId],
  );
  return rows.length > 0;
}

/** Projects for which messages wait. Each project costs one index step, however many messages wait. */
export async function projectsWithWaiting(queries: Queries): Promise<ProjectId[]> {
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

/** A message that was released because its project may start attempts again. */
export interface ReleasedMessage {
  key: number;
  project_id: number;
  due_at_ms: number;
  flow_key: string | null;
}

/** Releases as many waiting messages of each project as it has capacity for. A claim checks released messages again. */
export async function releaseWaiting(
  tx: Transaction,
  gate: ProjectGate,
  projectIds: Iterable<ProjectId>,
): Promise<ReleasedMessage[]> {
  const released: ReleasedMessage[] = [];
  if (!gate.isLimited) return released;
  await gate.load(projectIds);
  for (const projectId of new Set(projectIds)) {
    const capacity = Math.min(gate.capacityOf(projectId), RELEASED_MAX);
    if (capacity === 0) continue;
    released.push(
      ...(await tx.query<ReleasedMessage>(
        `select key, project_id, due_at_ms, flow_key from messages
         where project_id = ? and claim_token is null and wait_state = ${WAIT_STATE.project} order by due_at_ms, key limit ?`,
        [projectId, capacity],
      )),
    );
  }
  await tx.updateMany(
    'messages',
    'key',
    ['wait_state'],
    released.map(({ key, flow_key }): SqlValue[] => [key, waitStateBehindQueue(flow_key)]),
  );
  return released;
}
