/** Starts, controls and ends the thread of one worker, from the main thread. */
import { Worker } from 'node:worker_threads';
import { messageOf } from '../../admin/open-store.ts';
import type { Millis, WorkerId } from '../../engine/model.ts';
import type { EventLog } from '../../engine/ports.ts';
import { CannotStart } from '../../system/cannot-start.ts';
import type { Reading } from '../../telemetry/metrics/instruments.ts';
import type { ThreadStart, WorkerCommand, WorkerMessage } from './messages.ts';
import { PendingCalls } from './pending-calls.ts';

/** A worker's thread has ended unexpectedly. The state of its work is unknown, so the process must end. */
export class ThreadEnded extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'ThreadEnded';
  }
}

export interface WorkerThreadListeners {
  log: EventLog;
  /** Called when the thread has ended unexpectedly, or can no longer trust its store. The process must end. */
  onFatal: (error: Error) => void;
  /** Called when the thread has changed tokens or signing keys. Must resolve when all other threads know the changes. */
  onAccountsChanged: (thread: WorkerThread) => Promise<void>;
}

/** The caller that waits for the next state of the thread: started, listening or stopped. */
interface StateWaiter {
  resolve: (message: WorkerMessage) => void;
  reject: (error: Error) => void;
}

export class WorkerThread {
  readonly #worker: Worker;
  readonly #listeners: WorkerThreadListeners;
  readonly #refreshes = new PendingCalls();
  readonly #readings = new PendingCalls<Reading>();
  #stateWaiter: StateWaiter | undefined;
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
    this.#worker.on('message', (message: WorkerMessage) => this.#receive(message));
    this.#worker.on('error', (error) => this.#handleExit(error as Error));
    this.#worker.on('exit', () => this.#handleExit());
  }

  /** Resolves when the worker delivers. Throws `CannotStart` or `ThreadEnded`. */
  static async start(start: ThreadStart, listeners: WorkerThreadListeners): Promise<WorkerThread> {
    const thread = new WorkerThread(start, listeners);
    try {
      await thread.#nextState();
      return thread;
    } catch (error) {
      await thread.#terminate();
      throw error;
    }
  }

  /** Throws `CannotStart`. */
  async listen(port: number): Promise<{ url: string; port: number }> {
    this.#send({ kind: 'listen', port });
    const message = await this.#nextState();
    if (message.kind !== 'listening') throw new Error(`a worker sent ${message.kind} instead of listening`);
    return message;
  }

  /** Resolves when the thread uses the current tokens and signing keys of the store. */
  async refreshAccounts(): Promise<void> {
    if (this.#hasEnded) return;
    await this.#refreshes.call((id) => this.#send({ kind: 'refreshAccounts', id }));
  }

  /** The metrics of the thread's worker; empty if the thread has ended. Throws when the metrics cannot be read. */
  async readMetrics(): Promise<Reading> {
    if (this.#hasEnded) return [];
    return (await this.#readings.call((id) => this.#send({ kind: 'readMetrics', id }))) ?? [];
  }

  async stop(limitMs: Millis): Promise<void> {
    if (this.#hasEnded) return;
    const stopped = this.#nextState();
    this.#send({ kind: 'stop', limitMs });
    await stopped;
    await this.#terminate();
  }

  async #terminate(): Promise<void> {
    this.#hasEnded = true;
    this.#refreshes.settleAll();
    this.#readings.settleAll();
    await this.#worker.terminate();
  }

  #send(message: WorkerCommand): void {
    this.#worker.postMessage(message);
  }

  #nextState(): Promise<WorkerMessage> {
    return new Promise((resolve, reject) => {
      this.#stateWaiter = { resolve, reject };
    });
  }

  #receive(message: WorkerMessage): void {
    switch (message.kind) {
      case 'log':
        return this.#log(message);
      case 'refreshed':
        return this.#refreshes.settle(message.id, message);
      case 'metrics':
        return this.#readings.settle(message.id, message);
      case 'accountsChanged':
        void this.#replyToChange(message.id);
        return;
      case 'fatal':
        return this.#fail(new ThreadEnded(message.reason));
      case 'refused':
        return this.#stateWaiter?.reject(new CannotStart(message.reason));
      case 'started':
        this.#id = message.worker;
        return this.#stateWaiter?.resolve(message);
      case 'stopped':
        this.#hasEnded = true;
        this.#refreshes.settleAll();
        this.#readings.settleAll();
        return this.#stateWaiter?.resolve(message);
      case 'listening':
        return this.#stateWaiter?.resolve(message);
    }
  }

  async #replyToChange(id: number): Promise<void> {
    try {
      await this.#listeners.onAccountsChanged(this);
      this.#send({ kind: 'changeKnown', id });
    } catch (error) {
      this.#send({ kind: 'changeKnown', id, failure: messageOf(error) });
    }
  }

  #log({ level, event, fields }: Extract<WorkerMessage, { kind: 'log' }>): void {
    this.#listeners.log[level](event, this.#id === undefined ? fields : { worker: this.#id, ...fields });
  }

  #handleExit(cause?: Error): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    const ended = new ThreadEnded('a worker has ended unexpectedly', { cause });
    if (cause?.stack !== undefined) ended.stack = `${ended.message}: ${cause.stack}`; // shows where the defect is
    this.#fail(ended);
  }

  #fail(error: ThreadEnded): void {
    if (this.#id === undefined) this.#stateWaiter?.reject(error);
    else this.#listeners.onFatal(error);
  }
}
