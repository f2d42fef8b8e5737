/** Serves the requests of all threads that use a database. Runs in the database thread. */
import { type MessagePort, receiveMessageOnPort } from 'node:worker_threads';
import { StoreUnavailable } from '../../../engine/store-errors.ts';
import type { StoreLimits } from '../../../engine/stores.ts';
import { BatchRunner } from '../../batches/batch.ts';
import { StoreFatal } from '../../driver.ts';
import { runRead } from '../../operations/all.ts';
import type { MessageChunk } from './batch-chunks.ts';
import { Batcher, ThreadClient } from './batcher.ts';
import type { SqliteDriver } from './driver.ts';
import type { OwnerRequest, Request } from './messages.ts';

export class DatabaseServer {
  readonly #driver: SqliteDriver;
  readonly #batcher: Batcher;
  readonly #owner: { port: MessagePort; client: ThreadClient };
  /** The clients in the other threads. */
  readonly #clients = new Map<MessagePort, ThreadClient>();

  constructor(driver: SqliteDriver, owner: MessagePort, limits?: StoreLimits) {
    this.#driver = driver;
    this.#owner = { port: owner, client: clientAt(owner) };
    const runner = new BatchRunner(driver, limits);
    this.#batcher = new Batcher(
      (commands) => runner.run(commands),
      () => this.#receiveAll(),
      () => driver.maintain(),
    );
  }

  /** Starts to receive requests of the owner, and reports that the database is ready. */
  start(): void {
    const { port, client } = this.#owner;
    port.on('message', (request: OwnerRequest) => this.#receiveFromOwner(request));
    client.reply({ kind: 'ready' });
  }

  #receiveFromOwner(request: OwnerRequest): void {
    const { client } = this.#owner;
    if (request.kind === 'chunk') return client.addChunk(request);
    this.#serve(client, request, async () => {
      if (request.kind === 'connect') this.#connect(request.port);
      else if (request.kind === 'close') await this.#driver.close();
      else return this.#run(client, request);
      client.reply({ kind: 'done', id: request.id });
      if (request.kind === 'close') this.#closePorts();
    });
  }

  #connect(port: MessagePort): void {
    const client = clientAt(port);
    this.#clients.set(port, client);
    this.#batcher.join(client);
    port.on('message', (request: Request) => this.#receive(client, request));
    port.on('close', () => {
      this.#clients.delete(port);
      this.#batcher.leave(client);
    });
  }

  #receive(client: ThreadClient, request: Request): void {
    if (request.kind === 'chunk') return client.addChunk(request);
    this.#serve(client, request, () => this.#run(client, request));
  }

  /** Receives all queued requests, to share the next transaction. The event loop would deliver them one by one. */
  #receiveAll(): void {
    for (const [port, client] of this.#clients) {
      for (let next = receiveMessageOnPort(port); next; next = receiveMessageOnPort(port)) {
        this.#receive(client, next.message as Request);
      }
    }
  }

  async #run(client: ThreadClient, request: Exclude<Request, MessageChunk>): Promise<void> {
    if (request.kind === 'batch') {
      await this.#batcher.submit({ client, id: request.id, commands: client.withChunks(request.commands) });
      return;
    }
    const result = await runRead(this.#driver, request.method, request.args);
    client.reply({ kind: 'result', id: request.id, result });
  }

  #serve(client: ThreadClient, { id }: Exclude<OwnerRequest, MessageChunk>, work: () => Promise<void>): void {
    work().catch((error: unknown) => {
      if (error instanceof StoreFatal) {
        const clients = [this.#owner.client, ...this.#clients.values()];
        for (const each of clients) each.reply({ kind: 'fatal', reason: error.message });
        this.#closePorts();
        return;
      }
      const failure = error instanceof StoreUnavailable ? 'unavailable' : 'rejected';
      client.reply({ kind: 'failed', id, failure, reason: error instanceof Error ? error.message : String(error) });
    });
  }

  #closePorts(): void {
    for (const port of [this.#owner.port, ...this.#clients.keys()]) port.close();
  }
}

function clientAt(port: MessagePort): ThreadClient {
  return new ThreadClient((message) => port.postMessage(message));
}
