/** Starts, uses and ends a database thread. */
import { MessageChannel, type MessagePort, Worker } from 'node:worker_threads';
import type { BatchOutcome } from '../../batches/batch.ts';
import { StoreFatal } from '../../driver.ts';
import type { ReadMethod, Reads, WriteCommand } from '../../operations/all.ts';
import { DatabaseClient } from './client.ts';
import type { OwnerRequest, Reply, ThreadStart } from './messages.ts';

export class DatabaseThread {
  readonly #worker: Worker;
  readonly #client: DatabaseClient<OwnerRequest>;

  private constructor(worker: Worker, onFatal: (error: Error) => void, endOfTurn?: () => Promise<void>) {
    this.#worker = worker;
    const send = (request: OwnerRequest, transferred: readonly ArrayBuffer[] = []): void =>
      worker.postMessage(request, request.kind === 'connect' ? [request.port] : transferred);
    const requests = new DatabaseClient<OwnerRequest>(send, onFatal, endOfTurn);
    this.#client = requests;
    worker.on('message', (reply: Reply) => requests.receive(reply));
    worker.on('error', (error) => requests.fail(error as Error));
    worker.on('exit', () => requests.fail(new StoreFatal('the database thread has ended')));
  }

  /** Resolves when the database is open. Rejects with the reason of the thread when the database cannot be used. */
  static async start(
    start: ThreadStart,
    onFatal: (error: Error) => void,
    endOfTurn?: () => Promise<void>,
  ): Promise<DatabaseThread> {
    // The sources run as .ts, the published package as .js.
    const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js';
    const worker = new Worker(new URL(`./worker.${extension}`, import.meta.url), { workerData: start });
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
    return new DatabaseThread(worker, onFatal, endOfTurn);
  }

  run(commands: readonly WriteCommand[]): Promise<BatchOutcome> {
    return this.#client.run(commands);
  }

  read<M extends ReadMethod>(method: M, args: Reads[M]['args']): Promise<Reads[M]['result']> {
    return this.#client.read(method, args);
  }

  /** Returns a port to transfer to another thread, which can then use the database too. */
  async connect(): Promise<MessagePort> {
    const { port1, port2 } = new MessageChannel();
    await this.#client.request<void>({ kind: 'connect', port: port1 });
    return port2;
  }

  /** Ends the thread once its earlier requests are done. */
  async close(): Promise<void> {
    const closed = this.#client.requestLast<void>({ kind: 'close' });
    if (!closed) return;
    await closed;
    await this.#worker.terminate();
  }
}
