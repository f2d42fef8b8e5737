/** In a database's thread: which other threads use the database, and what is done for each of them? */
import { type MessagePort, receiveMessageOnPort } from 'node:worker_threads';
import { StoreUnavailable } from '../../../engine/store-errors.ts';
import type { StoreLimits } from '../../../engine/stores.ts';
import { BatchRunner } from '../../batches/batch.ts';
import { StoreFatal } from '../../driver.ts';
import { runRead } from '../../operations/all.ts';
import { Caller, Desk } from './desk.ts';
import type { SqliteDriver } from './driver.ts';
import type { OwnerRequest, Request } from './messages.ts';
import type { Piece } from './pieces.ts';

/** Answers all of them, one piece of work after the other. */
export class DatabaseUsers {
  readonly #driver: SqliteDriver;
  readonly #desk: Desk;
  readonly #owner: { port: MessagePort; caller: Caller };
  /** Of the other threads. */
  readonly #callers = new Map<MessagePort, Caller>();

  constructor(driver: SqliteDriver, owner: MessagePort, limits?: StoreLimits) {
    this.#driver = driver;
    this.#owner = { port: owner, caller: callerAt(owner) };
    const runner = new BatchRunner(driver, limits);
    this.#desk = new Desk({
      run: (commands) => runner.run(commands),
      hearAll: () => this.#hearAll(),
      maintain: () => driver.maintain(),
    });
  }

  /** From now on the owner is heard; it is told so. */
  begin(): void {
    const { port, caller } = this.#owner;
    port.on('message', (request: OwnerRequest) => this.#hearOwner(request));
    caller.reply({ kind: 'ready' });
  }

  #hearOwner(request: OwnerRequest): void {
    const { caller } = this.#owner;
    if (request.kind === 'piece') return caller.keep(request);
    this.#answer(caller, request, async () => {
      if (request.kind === 'connect') this.#connect(request.port);
      else if (request.kind === 'close') await this.#driver.close();
      else return this.#do(caller, request);
      caller.reply({ kind: 'done', id: request.id });
      if (request.kind === 'close') this.#closePorts();
    });
  }

  #connect(port: MessagePort): void {
    const caller = callerAt(port);
    this.#callers.set(port, caller);
    this.#desk.join(caller);
    port.on('message', (request: Request) => this.#hear(caller, request));
    port.on('close', () => {
      this.#callers.delete(port);
      this.#desk.leave(caller);
    });
  }

  #hear(caller: Caller, request: Request): void {
    if (request.kind === 'piece') return caller.keep(request);
    this.#answer(caller, request, () => this.#do(caller, request));
  }

  /** What waits at the ports already would otherwise be heard one by one, each after the transaction before. */
  #hearAll(): void {
    for (const [port, caller] of this.#callers) {
      for (let next = receiveMessageOnPort(port); next; next = receiveMessageOnPort(port)) {
        this.#hear(caller, next.message as Request);
      }
    }
  }

  async #do(caller: Caller, request: Exclude<Request, Piece>): Promise<void> {
    if (request.kind === 'batch') {
      await this.#desk.take({ caller, id: request.id, commands: caller.whole(request.commands) });
      return;
    }
    const answer = await runRead(this.#driver, request.method, request.args);
    caller.reply({ kind: 'answer', id: request.id, answer });
  }

  #answer(caller: Caller, { id }: Exclude<OwnerRequest, Piece>, work: () => Promise<void>): void {
    work().catch((error: unknown) => {
      if (error instanceof StoreFatal) {
        const callers = [this.#owner.caller, ...this.#callers.values()];
        for (const each of callers) each.reply({ kind: 'fatal', reason: error.message });
        this.#closePorts();
        return;
      }
      const failure = error instanceof StoreUnavailable ? 'unavailable' : 'rejected';
      caller.reply({ kind: 'failed', id, failure, reason: error instanceof Error ? error.message : String(error) });
    });
  }

  #closePorts(): void {
    for (const port of [this.#owner.port, ...this.#callers.keys()]) port.close();
  }
}

function callerAt(port: MessagePort): Caller {
  return new Caller((message) => port.postMessage(message));
}
