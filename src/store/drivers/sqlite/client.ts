/** The asking end of a conversation with a database thread: open requests, and the callers that wait for answers. */
import { StoreUnavailable } from '../../../engine/store-errors.ts';
import type { BatchOutcome } from '../../batches/batch.ts';
import { StoreFatal } from '../../driver.ts';
import type { ReadMethod, Reads, WriteCommand } from '../../operations/all.ts';
import type { OwnerRequest, Reply } from './messages.ts';
import { stepsOf, withoutPieces } from './pieces.ts';

interface Pending {
  resolve: (value: never) => void;
  reject: (error: Error) => void;
}

type WithoutId<R> = R extends { id: number } ? Omit<R, 'id'> : never;

export interface DatabaseClientOptions<R extends OwnerRequest> {
  send: (request: R, handedOver?: readonly ArrayBuffer[]) => void;
  /** Called once, when no more answers will come. */
  onFatal: (error: Error) => void;
  /** Resolves when this thread has taken in its waiting input. Default: the end of the microtasks. */
  endOfTurn?: () => Promise<void>;
  /** Told of what other threads have left waiting. */
  onLeft?: (left: Extract<Reply, { kind: 'left' }>) => void;
}

export class DatabaseClient<R extends OwnerRequest> {
  readonly #options: DatabaseClientOptions<R>;
  readonly #pending = new Map<number, Pending>();
  readonly #whenAnswered: (() => void)[] = [];
  /** Answers of reads that wait for another turn. */
  readonly #answers: (() => void)[] = [];
  #isPassingOn = false;
  #lastId = 0;
  #failure: Error | undefined;
  #closing = false;

  constructor(options: DatabaseClientOptions<R>) {
    this.#options = options;
  }

  /** Resolves after the commit. Call it again only then: the pieces sent belong to the batch that follows them. */
  async run(commands: readonly WriteCommand[]): Promise<BatchOutcome> {
    const { send, endOfTurn } = this.#options;
    for (const { piece, handedOver } of stepsOf(commands)) {
      if (piece) send(piece as R, handedOver);
      await endOfTurn?.();
    }
    return this.ask({ kind: 'batch', commands: withoutPieces(commands) } as WithoutId<R>);
  }

  read<M extends ReadMethod>(method: M, args: Reads[M]['args']): Promise<Reads[M]['answer']> {
    return this.ask({ kind: 'read', method, args } as WithoutId<R>);
  }

  /** Rejects with `StoreUnavailable` when the thread has failed or the conversation is over. */
  ask<Answer>(request: WithoutId<R>): Promise<Answer> {
    if (this.#failure) return Promise.reject(new StoreUnavailable('the store has failed', { cause: this.#failure }));
    if (this.#closing) return Promise.reject(new StoreUnavailable('the store is closing'));
    this.#lastId += 1;
    const id = this.#lastId;
    return new Promise((resolve, reject) => {
      this.#pending.set(id, { resolve, reject });
      this.#options.send({ id, ...request } as unknown as R);
    });
  }

  /** Sends a last request; `undefined` when the conversation is over already. */
  askLast<Answer>(request: WithoutId<R>): Promise<Answer> | undefined {
    if (this.#closing || this.#failure) return undefined;
    const answer = this.ask<Answer>(request);
    this.#closing = true;
    return answer;
  }

  /** Refuses new requests; resolves when all earlier ones are answered. */
  async close(): Promise<void> {
    this.#closing = true;
    if (this.#pending.size === 0) return;
    await new Promise<void>((resolve) => {
      this.#whenAnswered.push(resolve);
    });
  }

  receive(reply: Reply): void {
    if (reply.kind === 'fatal') return this.fail(new StoreFatal(reply.reason));
    if (reply.kind === 'left') return this.#options.onLeft?.(reply);
    if (reply.kind === 'ready' || reply.kind === 'refused') return;
    const pending = this.#pending.get(reply.id);
    this.#pending.delete(reply.id);
    if (reply.kind === 'outcome') pending?.resolve(reply.outcome as never);
    else if (reply.kind === 'answer') void this.#passOn(() => pending?.resolve(reply.answer as never));
    else if (reply.kind === 'done') pending?.resolve(undefined as never);
    else if (reply.failure === 'unavailable') pending?.reject(new StoreUnavailable(reply.reason));
    else pending?.reject(new Error(`the store refused to read: ${reply.reason}`));
    if (this.#pending.size === 0) this.#tellWhoWaits();
  }

  /**
   * One in each turn of the event loop: decoding it and writing the response may take ten milliseconds, and many that arrive
   * together would hold everybody else up until the last is written.
   */
  async #passOn(answer: () => void): Promise<void> {
    this.#answers.push(answer);
    if (this.#isPassingOn) return;
    this.#isPassingOn = true;
    for (let next = this.#answers.shift(); next; next = this.#answers.shift()) {
      next();
      await this.#options.endOfTurn?.();
    }
    this.#isPassingOn = false;
  }

  /** No more answers will come. After a close this is normal. */
  fail(error: Error): void {
    if (this.#failure || (this.#closing && this.#pending.size === 0)) return;
    this.#failure = error;
    for (const { reject } of this.#pending.values()) reject(error);
    this.#pending.clear();
    this.#tellWhoWaits();
    this.#options.onFatal(error);
  }

  #tellWhoWaits(): void {
    for (const resolve of this.#whenAnswered.splice(0)) resolve();
  }
}
