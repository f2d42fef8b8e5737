/** What the engine asks of a store about queues and flow-control keys (see `stores.ts`). */
import type { InProject, InProjectAt, Millis } from '../model.ts';
import type { FlowKey, FlowPin, Queue } from './lanes.ts';

export interface QueueStore {
  /** Makes a queue or replaces its settings; what exists is never refused. */
  saveQueue(
    args: InProjectAt & { name: string; parallelism: number; isPaused: boolean },
  ): Promise<'saved' | 'tooManyQueues'>;
  setQueuePaused(args: InProjectAt & { name: string; isPaused: boolean }): Promise<'saved' | 'missing'>;
  /**
   * Removes the queue at once; the caller then cancels its messages with `emptyQueue`. `undefined`: there is no such
   * queue. If the caller crashes before it is done, `dropExpired` does the rest: a worker that notices the crash calls
   * it at once.
   */
  deleteQueue(args: InProjectAt & { name: string }): Promise<DeletedQueue | undefined>;
  /** Cancels a piece of the messages of a deleted queue; answers whether more may be left. */
  emptyQueue(args: DeletedQueue & { count: number; nowMs: Millis }): Promise<boolean>;
  findQueue(args: InProjectAt & { name: string }): Promise<Queue | undefined>;
  /** Ordered by name: up to `count` (all) of those after `after`. */
  listQueues(args: InProjectAt & { after?: string; count?: number }): Promise<Queue[]>;
}

export interface DeletedQueue extends InProject {
  queueId: number;
}

export interface FlowKeyStore {
  /** Pausing makes the key if need be; resuming one that does not exist changes nothing. */
  setKeyPaused(args: InProjectAt & { key: string; isPaused: boolean }): Promise<void>;
  /** Makes the key if need be. */
  pinKey(args: InProjectAt & { key: string; pin: FlowPin }): Promise<void>;
  /** The last values stay in force until the next message sets new ones. */
  unpinKey(args: InProjectAt & { key: string; parallelism: boolean; rate: boolean }): Promise<void>;
  resetKeyRate(args: InProjectAt & { key: string }): Promise<void>;
  findKey(args: InProjectAt & { key: string }): Promise<FlowKey | undefined>;
  /** Ordered by key: up to `count` of those after `after` that contain `search`. */
  listKeys(args: InProjectAt & { search: string; after: string; count: number }): Promise<FlowKey[]>;
  /** Attempts of the project in flight, of all workers. */
  countInFlight(args: InProject): Promise<number>;
}
