/** The client of a database thread: sends requests, limits concurrent reads, and resolves callers with the replies. */
import { FairQueue } from '../../../engine/admission/fair-queue.ts';
import type { ProjectId } from '../../../engine/model.ts';
import { StoreUnavailable } from '../../../engine/store-errors.ts';
import type { BatchOutcome } from '../../batches/batch.ts';
import { StoreEvents } from '../../connection.ts';
import { StoreFatal } from '../../driver.ts';
import { isLongRead, type ReadMethod, type Reads, type WriteCommand } from '../../operations/all.ts';
import { stepsOf, withoutChunks } from './batch-chunks.ts';
import type { OwnerRequest, Reply } from './messages.ts';

/**
 * Limits concurrent reads: one long read, or 16 short reads. Node delivers all received replies in one round of the event
 * loop, and decoding a page of 1,000 rows and writing the response takes ten milliseconds.
 */
const READ_COST_MAX = 16;

interface PendingRequest {
  resolve: (value: never) => void;
  reject: (error: Error) => void;
  /** 0 if the request is not a read. */
  readCost: number;
}

type WithoutId<R> = R extends { id: number } ? Omit<R, 'id'> : never;

type Send<R> = (request: R, transferred?: readonly ArrayBuffer[]) => void;

export class DatabaseClient<R extends OwnerRequest> {
  readonly #send: Send<R>;
  readonly #onFatal: (error: Error) => void;
  readonly #endOfTurn: () => Promise<void>;
  readonly #events: StoreEvents;
  readonly #pending = new Map<number, PendingRequest>();
  readonly #closeWaiters: (() => void)[] = [];
  /** Reads that wait to be sent, round-robin by project. */
  readonly #reads = new FairQueue<R>();
  /** Cost of the sent reads. A read's cost is released at the end of the event-loop round that delivers its reply. */
  #readCost = 0;
  #lastId = 0;
  #failure: Error | undefined;
  #closing = false;

  /**
   * `onFatal` is called once, when no more replies follow. `endOfTurn` resolves when this thread has read its pending
   * input; by default, in the next microtask. `events` reports work that other threads have saved.
   */
  constructor(
    send: Send<R>,
    onFatal: (error: Error) => void,
    endOfTurn = () => Promise.resolve(),
    events = new StoreEvents(),
  ) {
    this.#send = send;
    this.#onFatal = onFatal;
    this.#endOfTurn = endOfTurn;
    this.#events = events;
  }

  /** Resolves after the commit. Must not be called again before, because chunks belong to the next batch that is sent. */
  async run(commands: readonly WriteCommand[]): Promise<BatchOutcome> {
    for (const { chunk, transferred } of stepsOf(commands)) {
      if (chunk) this.#send(chunk as R, transferred);
      await this.#endOfTurn();
    }
    return this.request({ kind: 'batch', commands: withoutChunks(commands) } as WithoutId<R>);
  }

  read<M extends ReadMethod>(method: M, args: Reads[M]['args']): Promise<Reads[M]['result']> {
    return this.request({ kind: 'read', method, args } as WithoutId<R>, isLongRead(method) ? READ_COST_MAX : 1);
  }

  /** Rejects with `StoreUnavailable` when the thread has failed or this client is closed. */
  request<Result>(request: WithoutId<R>, readCost = 0): Promise<Result> {
    if (this.#closing) return Promise.reject(new StoreUnavailable('the store is closing'));
    return this.#request(request, readCost);
  }

  /** Sends a last request after all other replies. Returns undefined if this client is closed or has failed. */
  requestLast<Result>(request: WithoutId<R>): Promise<Result> | undefined {
    if (this.#closing || this.#failure) return undefined;
    return this.close().then(() => this.#request(request, 0));
  }

  #request<Result>(request: WithoutId<R>, readCost: number): Promise<Result> {
    if (this.#failure) return Promise.reject(new StoreUnavailable('the store has failed', { cause: this.#failure }));
    this.#lastId += 1;
    const id = this.#lastId;
    return new Promise((resolve, reject) => {
      this.#pending.set(id, { resolve, reject, readCost });
      this.#sendOrQueue({ id, ...request } as unknown as R, readCost);
    });
  }

  #sendOrQueue(request: R, readCost: number): void {
    if (request.kind !== 'read') return this.#send(request);
    const { projectId = 0 } = (request.args ?? {}) as { projectId?: ProjectId };
    this.#reads.push(projectId, request, readCost);
    this.#sendReads();
  }

  #sendReads(): void {
    const next: R[] = [];
    this.#readCost += this.#reads.takeInto(next, READ_COST_MAX - this.#readCost);
    for (const request of next) this.#send(request);
  }

  /** Refuses new requests. Resolves when all earlier requests have a reply. */
  async close(): Promise<void> {
    this.#closing = true;
    if (this.#pending.size === 0) return;
    await new Promise<void>((resolve) => {
      this.#closeWaiters.push(resolve);
    });
  }

  receive(reply: Reply): void {
    if (reply.kind === 'fatal') return this.fail(new StoreFatal(reply.reason));
    if (reply.kind === 'notice') return this.#report(reply);
    if (reply.kind === 'ready' || reply.kind === 'refused') return;
    const pending = this.#pending.get(reply.id);
    this.#pending.delete(reply.id);
    if (reply.kind === 'outcome') pending?.resolve(reply.outcome as never);
    else if (reply.kind === 'result') pending?.resolve(reply.result as never);
    else if (reply.kind === 'done') pending?.resolve(undefined as never);
    else if (reply.failure === 'unavailable') pending?.reject(new StoreUnavailable(reply.reason));
    else pending?.reject(new Error(`the store refused a read: ${reply.reason}`));
    if (pending && pending.readCost > 0) void this.#releaseRead(pending.readCost);
    if (this.#pending.size === 0) this.#resolveClose();
  }

  #report({ dueAtMs, waitingBacklogs, cancelledClaims }: Extract<Reply, { kind: 'notice' }>): void {
    if (dueAtMs !== null) this.#events.onDue(dueAtMs);
    for (const backlog of waitingBacklogs) this.#events.onWaitingBacklog(backlog);
    if (cancelledClaims.length > 0) this.#events.onCancelled(cancelledClaims);
  }

  async #releaseRead(readCost: number): Promise<void> {
    await this.#endOfTurn();
    this.#readCost -= readCost;
    this.#sendReads();
  }

  /** Called when no more replies follow, which is normal after a close. */
  fail(error: Error): void {
    if (this.#failure || (this.#closing && this.#pending.size === 0)) return;
    this.#failure = error;
    for (const { reject } of this.#pending.values()) reject(error);
    this.#pending.clear();
    this.#resolveClose();
    this.#onFatal(error);
  }

  #resolveClose(): void {
    for (const resolve of this.#closeWaiters.splice(0)) resolve();
  }
}
