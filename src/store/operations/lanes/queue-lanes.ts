/**
 * The permits of queues. A message keeps its permit until it and its callbacks are finished (contract M 14.1, 9.5).
 * Permits are not counted up and down: they are derived from the messages that hold one.
 */
import type { ProjectId } from '../../../engine/model.ts';
import type { Queries, SqlValue, Transaction } from '../../driver.ts';
import { byProject } from '../locking/by-project.ts';
import { NOT_ENDING, WAIT_STATE, waitStateBehindQueue } from './wait-states.ts';

export interface QueueRef {
  projectId: ProjectId;
  queueId: number;
}

export interface QueueStateRow {
  project_id: number;
  id: number;
  name: string;
  parallelism: number;
  paused: number;
  next_position: number;
  permits_taken: number;
  first_position: number | null;
}

/**
 * The fields of a queue from `queues q`, with the number of its taken permits and the first message that waits for a
 * permit.
 */
const QUEUE_STATE_FIELDS = `q.project_id, q.id, q.name, q.parallelism, q.paused, q.next_position,
  (select count(distinct m.queue_permit) from messages m
   where m.project_id = q.project_id and m.queue_id = q.id and m.queue_permit is not null) as permits_taken,
  (select m.queue_position from messages m
   where m.project_id = q.project_id and m.queue_id = q.id and m.claim_token is null and m.wait_state = ${WAIT_STATE.queue} and m.queue_permit is null
   order by m.queue_position limit 1) as first_position`;

/** A queue within the transaction that adds messages to it. */
export class QueueLane {
  readonly id: number;
  readonly projectId: ProjectId;
  #row: QueueStateRow;
  #hasWaiting: boolean;

  constructor(row: QueueStateRow) {
    this.id = row.id;
    this.projectId = row.project_id;
    this.#row = { ...row };
    this.#hasWaiting = row.first_position !== null;
  }

  get nextPosition(): number {
    return this.#row.next_position;
  }

  /** Assigns the next message its position, and a permit if one is free. */
  enter(): { position: number; hasPermit: boolean } {
    const position = this.#row.next_position;
    this.#row.next_position += 1;
    const { paused, permits_taken, parallelism } = this.#row;
    const hasPermit = paused === 0 && !this.#hasWaiting && permits_taken < parallelism;
    if (hasPermit) this.#row.permits_taken += 1;
    else this.#hasWaiting = true;
    return { position, hasPermit };
  }
}

/** The queues of a transaction that adds messages to them, by name. */
export class QueueLanes {
  readonly #tx: Transaction;
  readonly #lanes = new Map<string, QueueLane>();
  readonly #countByProject = new Map<ProjectId, number>();

  constructor(tx: Transaction) {
    this.#tx = tx;
  }

  async load(refs: readonly { projectId: ProjectId; name: string }[]): Promise<void> {
    for (const [projectId, names] of byProject(refs, ({ name }) => name)) {
      const rows = await this.#tx.query<QueueStateRow>(
        `select ${QUEUE_STATE_FIELDS} from queues q where q.project_id = ? and q.deleted = 0 and q.name in (??)
         order by q.name for update of q`,
        [projectId, names],
      );
      for (const row of rows) this.#lanes.set(nameOf(projectId, row.name), new QueueLane(row));
    }
  }

  find(projectId: ProjectId, name: string): QueueLane | undefined {
    return this.#lanes.get(nameOf(projectId, name));
  }

  /** Creates a queue with parallelism 1. Returns undefined if the project already has `queuesMax` queues (0: any). */
  async create(projectId: ProjectId, name: string, queuesMax: number, nowMs: number): Promise<QueueLane | undefined> {
    if (queuesMax > 0) {
      const count = this.#countByProject.get(projectId) ?? (await countQueues(this.#tx, projectId));
      if (count >= queuesMax) return undefined;
      this.#countByProject.set(projectId, count + 1);
    }
    const id = await insertQueue(this.#tx, { projectId, name, parallelism: 1, isPaused: false, nowMs });
    const lane = new QueueLane({
      project_id: projectId,
      id,
      name,
      parallelism: 1,
      paused: 0,
      next_position: 1,
      permits_taken: 0,
      first_position: null,
    });
    this.#lanes.set(nameOf(projectId, name), lane);
    return lane;
  }

  async save(): Promise<void> {
    for (const { projectId, id, nextPosition } of this.#lanes.values()) {
      await this.#tx.send('update queues set next_position = ? where project_id = ? and id = ?', [
        nextPosition,
        projectId,
        id,
      ]);
    }
  }
}

export async function countQueues(queries: Queries, projectId: ProjectId): Promise<number> {
  const [row] = await queries.query<{ count: number }>(
    'select count(*) as count from queues where project_id = ? and deleted = 0',
    [projectId],
  );
  return row?.count ?? 0;
}

export interface NewQueue {
  projectId: ProjectId;
  name: string;
  parallelism: number;
  isPaused: boolean;
  nowMs: number;
}

export async function insertQueue(tx: Transaction, queue: NewQueue): Promise<number> {
  const { projectId, name, parallelism, isPaused, nowMs } = queue;
  const id = await tx.reserve('queues', 1);
  await tx.insertMany(
    'queues',
    ['project_id', 'id', 'name', 'parallelism', 'paused', 'next_position', 'created_at_ms', 'updated_at_ms', 'deleted'],
    [[projectId, id, name, parallelism, isPaused ? 1 : 0, 1, nowMs, nowMs, 0]],
  );
  return id;
}

/** A message that has received a permit of its queue, and now waits for its due time or its flow-control key. */
export interface QueueHead {
  key: number;
  project_id: number;
  queue_id: number;
  origin: string;
  due_at_ms: number;
  bytes: number;
  flow_key: string | null;
  /** Whether the message may be claimed: not if it belongs to an ended run (`NOT_ENDING`). */
  is_claimable: number | boolean;
}

/** The queues of `refs` with their taken permits. */
export async function queuesById(tx: Transaction, refs: readonly QueueRef[]): Promise<Map<number, QueueStateRow>> {
  const states = new Map<number, QueueStateRow>();
  for (const [projectId, ids] of byProject(refs, ({ queueId }) => queueId)) {
    const rows = await tx.query<QueueStateRow>(
      `select ${QUEUE_STATE_FIELDS} from queues q where q.project_id = ? and q.id in (??) order by q.id for update of q`,
      [projectId, ids],
    );
    for (const row of rows) states.set(row.id, row);
  }
  return states;
}

/** Gives the free permits to the messages that have waited longest, and returns these messages. Skips paused queues. */
export async function advance(tx: Transaction, queues: Iterable<QueueStateRow>): Promise<QueueHead[]> {
  const heads: QueueHead[] = [];
  for (const { project_id, id, parallelism, paused, permits_taken, first_position } of queues) {
    const free = parallelism - permits_taken;
    if (paused === 1 || free <= 0 || first_position === null) continue;
    heads.push(
      ...(await tx.query<QueueHead>(
        `select key, project_id, queue_id, origin, due_at_ms, bytes, flow_key, ${NOT_ENDING} as is_claimable
         from messages
         where project_id = ? and queue_id = ? and claim_token is null and wait_state = ${WAIT_STATE.queue} and queue_permit is null
         order by queue_position limit ?`,
        [project_id, id, free],
      )),
    );
  }
  await tx.updateMany(
    'messages',
    'key',
    ['queue_permit', 'wait_state'],
    heads.map((head): SqlValue[] => [head.key, head.key, waitStateBehindQueue(head.flow_key)]),
  );
  return heads;
}

function nameOf(projectId: ProjectId, name: string): string {
  return `${projectId} ${name}`;
}
