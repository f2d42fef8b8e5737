/** A worker's thread, as its supervisor sees it. */
import { Worker } from 'node:worker_threads';
import { messageOf } from '../../admin/open-store.ts';
import type { Millis, WorkerId } from '../../engine/model.ts';
import type { EventLog } from '../../engine/ports.ts';
import { CannotStart } from '../../system/cannot-start.ts';
import type { Reading } from '../../telemetry/metrics/instruments.ts';
import type { FromWorker, ThreadStart, ToWorker } from './messages.ts';
import { PendingCalls } from './pending-calls.ts';

/** A thread has ended unexpectedly. The state of its work is unknown, so the whole process must end. */
export class ThreadEnded extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'ThreadEnded';
  }
}

export interface WorkerThreadListeners {
  log: EventLog;
  /** Called when the thread has ended by itself, or can no longer trust its store: the process must end. */
  onFatal: (error: Error) => void;
  /** Called when the thread has changed tokens or signing keys. Resolves when all other threads know them. */
  onAccountsChanged: (thread: WorkerThread) => Promise<void>;
}

/** The caller that waits for the next step of the thread: its start, its listening, its end. */
interface Step {
  resolve: (message: FromWorker) => void;
  reject: (error: Error) => void;
}

export class WorkerThread {
  readonly #worker: Worker;
  readonly #listeners: WorkerThreadListeners;
  readonly #refreshes = new PendingCalls();
  readonly #readings = new PendingCalls<Reading>();
  #step: Step | undefined;
  #id: WorkerId | undefined;
  #hasEnded = false;

  private constructor(start: ThreadStart, listeners: WorkerThreadListeners) {
    this.#listeners = listeners;
    // The sources run as .ts, the published package as .js.
    const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js';
    const { writer, lister } = start.database ?? {};
    const ports = [writer, lister, ...start.others.ports.values()];
    this.#worker = new Worker(new URL(`./entry.${extension}`, import.meta.url), {
      workerData: start,
      transferList: ports.filter((port) => port !== undefined),
    });
    this.#worker.on('message', (message: FromWorker) => this.#hear(message));
    this.#worker.on('error', (error) => this.#end(error as Error));
    this.#worker.on('exit', () => this.#end());
  }

  /** Resolves when the worker delivers. Throws `CannotStart` or `ThreadEnded`. */
  static async start(start: ThreadStart, listeners: WorkerThreadListeners): Promise<WorkerThread> {
    const thread = new WorkerThread(start, listeners);
    try {
      await thread.#next();
      return thread;
    } catch (error) {
      await thread.#terminate();
      throw error;
    }
  }

  /** Throws `CannotStart`. */
  async listen(port: number): Promise<{ url: string; port: number }> {
    this.#tell({ kind: 'listen', port });
    const message = await this.#next();
    if (message.kind !== 'listening') throw new Error(`a worker sent ${message.kind} instead of listening`);
    return message;
  }

  /** Resolves when the thread uses the tokens and signing keys that are now in the store. */
  async refreshAccounts(): Promise<void> {
    if (this.#hasEnded) return;
    await this.#refreshes.ask((id) => this.#tell({ kind: 'refreshAccounts', id }));
  }

  /** The numbers of the thread's worker; none when it has ended. Throws when the worker cannot read them. */
  async readMetrics(): Promise<Reading> {
    if (this.#hasEnded) return [];
    return (await this.#readings.ask((id) => this.#tell({ kind: 'readMetrics', id }))) ?? [];
  }

  async stop(limitMs: Millis): Promise<void> {
    if (this.#hasEnded) return;
    const stopped = this.#next();
    this.#tell({ kind: 'stop', limitMs });
    await stopped;
    await this.#terminate();
  }

  async #terminate(): Promise<void> {
    this.#hasEnded = true;
    this.#refreshes.settleAll();
    this.#readings.settleAll();
    await this.#worker.terminate();
  }

  #tell(message: ToWorker): void {
    this.#worker.postMessage(message);
  }

  #next(): Promise<FromWorker> {
    return new Promise((resolve, reject) => {
      this.#step = { resolve, reject };
    });
  }

  #hear(message: FromWorker): void {
    switch (message.kind) {
      case 'log':
        return this.#log(message);
      case 'refreshed':
        return this.#refreshes.settle(message.id, message);
      case 'metrics':
        return this.#readings.settle(message.id, message);
      case 'accountsChanged':
        void this.#handleAccountsChange(message.id);
        return;
      case 'fatal':
        return this.#fail(new ThreadEnded(message.reason));
      case 'refused':
        return this.#step?.reject(new CannotStart(message.reason));
      case 'started':
        this.#id = message.worker;
        return this.#step?.resolve(message);
      case 'stopped':
        this.#hasEnded = true;
        this.#refreshes.settleAll();
        this.#readings.settleAll();
        return this.#step?.resolve(message);
      case 'listening':
        return this.#step?.resolve(message);
    }
  }

  async #handleAccountsChange(id: number): Promise<void> {
    try {
      await this.#listeners.onAccountsChanged(this);
      this.#tell({ kind: 'changeKnown', id });
    } catch (error) {
      this.#tell({ kind: 'changeKnown', id, failure: messageOf(error) });
    }
  }

  #log({ level, event, fields }: Extract<FromWorker, { kind: 'log' }>): void {
    this.#listeners.log[level](event, this.#id === undefined ? fields : { worker: this.#id, ...fields });
  }

  #end(cause?: Error): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    const ended = new ThreadEnded('a worker has ended by itself', { cause });
    if (cause?.stack !== undefined) ended.stack = `${ended.message}: ${cause.stack}`; // shows where the defect is
    this.#fail(ended);
  }

  #fail(error: ThreadEnded): void {
    if (this.#id === undefined) this.#step?.reject(error);
    else this.#listeners.onFatal(error);
  }
}
