/** The server's end of a database thread. */
import { Worker } from 'node:worker_threads';
import { StoreUnavailable } from '../../../engine/stores.ts';
import type { BatchOutcome, WriteCommand } from '../../batch.ts';
import { StoreFatal } from '../../driver.ts';
import type { ReadMethod, Reads } from '../../reads.ts';
import type { Reply, Request, ThreadOptions } from './messages.ts';

interface Pending {
  resolve: (value: never) => void;
  reject: (error: Error) => void;
}

type WithoutId<R> = R extends { id: number } ? Omit<R, 'id'> : never;

export class DatabaseThread {
  readonly #worker: Worker;
  readonly #pending = new Map<number, Pending>();
  readonly #onFatal: (error: Error) => void;
  #lastId = 0;
  #failure: Error | undefined;
  #closing = false;

  private constructor(worker: Worker, onFatal: (error: Error) => void) {
    this.#worker = worker;
    this.#onFatal = onFatal;
  }

  /** Resolves when the database is open; rejects, with the reason the thread gave, when it cannot be used. */
  static async start(options: ThreadOptions, onFatal: (error: Error) => void): Promise<DatabaseThread> {
    // The sources run as .ts, the published package as .js.
    const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js';
    const worker = new Worker(new URL(`./worker.${extension}`, import.meta.url), { workerData: options });
    const first = await new Promise<Reply>((resolve, reject) => {
      worker.once('message', resolve);
      worker.once('error', reject);
      worker.once('exit', () => reject(new StoreFatal('the database thread ended while it started')));
    });
    if (first.kind === 'refused') {
      const error = new Error(first.reason);
      error.name = first.name;
      throw error;
    }
    const thread = new DatabaseThread(worker, onFatal);
    worker.on('message', (reply: Reply) => thread.#receive(reply));
    worker.on('error', (error) => thread.#fail(error as Error));
    worker.on('exit', () => thread.#fail(new StoreFatal('the database thread has ended')));
    return thread;
  }

  run(commands: readonly WriteCommand[]): Promise<BatchOutcome> {
    return this.#ask({ kind: 'batch', commands });
  }

  read<M extends ReadMethod>(method: M, args: Reads[M]['args']): Promise<Reads[M]['answer']> {
    return this.#ask({ kind: 'read', method, args });
  }

  /** Ends the thread once what it was asked before is done. */
  async close(): Promise<void> {
    if (this.#closing || this.#failure) return;
    const closed = this.#ask<void>({ kind: 'close' });
    this.#closing = true;
    await closed;
    await this.#worker.terminate();
  }

  #ask<Answer>(request: WithoutId<Request>): Promise<Answer> {
    if (this.#failure) return Promise.reject(new StoreUnavailable('the store has failed', { cause: this.#failure }));
    if (this.#closing) return Promise.reject(new StoreUnavailable('the store is closing'));
    this.#lastId += 1;
    const id = this.#lastId;
    return new Promise((resolve, reject) => {
      this.#pending.set(id, { resolve, reject });
      this.#worker.postMessage({ id, ...request });
    });
  }

  #receive(reply: Reply): void {
    if (reply.kind === 'fatal') {
      this.#fail(new StoreFatal(reply.reason));
      return;
    }
    if (reply.kind === 'ready' || reply.kind === 'refused') return;
    const pending = this.#pending.get(reply.id);
    this.#pending.delete(reply.id);
    if (reply.kind === 'outcome') pending?.resolve(reply.outcome as never);
    else if (reply.kind === 'answer') pending?.resolve(reply.answer as never);
    else if (reply.kind === 'closed') pending?.resolve(undefined as never);
    else if (reply.failure === 'unavailable') pending?.reject(new StoreUnavailable(reply.reason));
    else pending?.reject(new Error(`the store refused to read: ${reply.reason}`));
  }

  #fail(error: Error): void {
    if (this.#failure || (this.#closing && this.#pending.size === 0)) return;
    this.#failure = error;
    for (const { reject } of this.#pending.values()) reject(error);
    this.#pending.clear();
    this.#onFatal(error);
  }
}
