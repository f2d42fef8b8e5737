/**
 * The queue in front of the writer. What comes in one turn of the event loop goes together; what comes while a
 * transaction is being committed forms the next one. So an idle store adds no delay, a busy one shares its fsyncs, and
 * nothing waits for a timer.
 */
import { CommitInDoubt, StoreUnavailable } from '../engine/stores.ts';
import type { BatchOutcome, WriteCommand, WriteMethod, WriteResult, Writes } from './batch.ts';
import type { StoredEvent } from './sql/rows.ts';

export interface GroupCommitOptions {
  /** Commits a batch; one result per command. Rejects only when the store must not be used any more. */
  flush: (commands: readonly WriteCommand[]) => Promise<BatchOutcome>;
  /** Told once, when `flush` rejected. Everything that waits, and all that comes later, is refused. */
  onFatal: (error: Error) => void;
  /**
   * Resolves when the event loop has handed out what it has. Without it, the first of 64 requests that arrive together
   * is committed alone, and the 63 others wait for that. Default: the end of the microtasks.
   */
  endOfTurn?: () => Promise<void>;
  /** Rows of one batch at most; one command alone may be larger. Default 200: longer flushes stall the rest. */
  rowsMax?: number;
  /** Body bytes of one batch at most; one command alone may be larger. */
  bytesMax?: number;
  /** Batches being committed at once, where the database can do that. Default 1. */
  flushesMax?: number;
}

export const ROWS_MAX = 200;
export const BYTES_MAX = 4 * 1024 * 1024;

interface Waiting {
  command: WriteCommand;
  rows: number;
  bytes: number;
  resolve: (answer: never) => void;
  reject: (error: Error) => void;
}

export class GroupCommit {
  readonly #flush: GroupCommitOptions['flush'];
  readonly #onFatal: GroupCommitOptions['onFatal'];
  readonly #endOfTurn: () => Promise<void>;
  readonly #rowsMax: number;
  readonly #bytesMax: number;
  readonly #flushesMax: number;
  #onDue: (dueAtMs: number) => void = () => {};
  #onDoubt: () => void = () => {};
  #waiting: Waiting[] = [];
  #flushing = 0;
  /** Why new commands are refused. */
  #refusal: string | undefined;
  #failed = false;
  #idle: (() => void) | undefined;
  #batches = 0;
  #commands = 0;

  constructor({
    flush,
    onFatal,
    endOfTurn,
    rowsMax = ROWS_MAX,
    bytesMax = BYTES_MAX,
    flushesMax = 1,
  }: GroupCommitOptions) {
    this.#flush = flush;
    this.#flushesMax = flushesMax;
    this.#onFatal = onFatal;
    this.#endOfTurn = endOfTurn ?? (() => Promise.resolve());
    this.#rowsMax = rowsMax;
    this.#bytesMax = bytesMax;
  }

  /** Batches committed, commands in them, commands that wait. */
  get counts(): { batches: number; commands: number; waiting: number } {
    return { batches: this.#batches, commands: this.#commands, waiting: this.#waiting.length };
  }

  /** From now on `listener` is told when a batch let something go that nobody asked for: the earliest time it is due. */
  listen(listener: (dueAtMs: number) => void): void {
    this.#onDue = listener;
  }

  /** From now on `listener` is told when a batch was refused whose commit may have come through, and only the answer not. */
  listenForDoubt(listener: () => void): void {
    this.#onDoubt = listener;
  }

  /**
   * Resolves after the commit. Rejects with `StoreUnavailable` when nothing was saved and trying again may help; with
   * `CommitInDoubt`, which is one, when nobody knows.
   */
  run<M extends WriteMethod>(method: M, args: Writes[M]['args']): Promise<Writes[M]['answer']> {
    if (this.#refusal !== undefined) return Promise.reject(new StoreUnavailable(this.#refusal));
    return new Promise((resolve, reject) => {
      const command = { method, args } as WriteCommand;
      this.#waiting.push({ command, ...weigh(command), resolve, reject });
      if (this.#flushing < this.#flushesMax) void this.#flushAll();
    });
  }

  /** Refuses new commands; resolves when those that wait are done. */
  async close(): Promise<void> {
    this.#refusal ??= 'the store is closing';
    if (this.#flushing > 0) {
      await new Promise<void>((resolve) => {
        this.#idle = resolve;
      });
    }
  }

  /** The store must not be used any more: refuses everything that waits or comes later, and says so once. */
  fail(error: Error): void {
    if (this.#failed) return;
    this.#failed = true;
    this.#refusal = 'the store has failed';
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const { reject } of waiting) reject(new StoreUnavailable(this.#refusal, { cause: error }));
    this.#onFatal(error);
  }

  async #flushAll(): Promise<void> {
    this.#flushing += 1;
    await this.#endOfTurn();
    // Without another pause: the writer has the next batch while this thread is busy with the answers of the last.
    while (this.#waiting.length > 0) {
      const batch = this.#takeBatch();
      try {
        const { results, dueAtMs } = await this.#flush(batch.map(({ command }) => command));
        if (dueAtMs !== null) this.#onDue(dueAtMs);
        if (results.some((result) => result.kind === 'unavailable' && result.isInDoubt)) this.#onDoubt();
        this.#batches += 1;
        this.#commands += batch.length;
        for (const [index, waiting] of batch.entries()) settleCaller(waiting, results[index]);
      } catch (error) {
        const reason = error instanceof Error ? error : new Error(String(error));
        for (const { reject } of batch) reject(new StoreUnavailable('the store has failed', { cause: reason }));
        this.fail(reason);
      }
    }
    this.#flushing -= 1;
    if (this.#flushing === 0) this.#idle?.();
  }

  /** In order of arrival, up to the limits, so that no kind of command can starve another. */
  #takeBatch(): Waiting[] {
    let count = 0;
    let rows = 0;
    let bytes = 0;
    for (const waiting of this.#waiting) {
      rows += waiting.rows;
      bytes += waiting.bytes;
      if (count > 0 && (rows > this.#rowsMax || bytes > this.#bytesMax)) break;
      count += 1;
    }
    return this.#waiting.splice(0, count);
  }
}

function settleCaller({ resolve, reject }: Waiting, result: WriteResult | undefined): void {
  if (result === undefined) reject(new Error('the store gave no answer'));
  else if (result.kind === 'answer') resolve(result.answer as never);
  else if (result.kind === 'unavailable') {
    reject(result.isInDoubt ? new CommitInDoubt(result.reason) : new StoreUnavailable(result.reason));
  } else reject(new Error(`the store refused a command: ${result.reason}`));
}

/** About how many messages a command touches, and the body bytes it carries. */
export function weigh(command: WriteCommand): { rows: number; bytes: number } {
  switch (command.method) {
    case 'accept':
      return { rows: command.args.messages.length, bytes: bodyBytes(command.args.messages) };
    case 'reviveDead':
      return {
        rows: command.args.revivals.length,
        bytes: bodyBytes(command.args.revivals.map(({ successor }) => successor)),
      };
    case 'changeSchedules': {
      const messages = command.args.changes.flatMap((change) => change.messages);
      return { rows: command.args.changes.length + messages.length, bytes: bodyBytes(messages) };
    }
    case 'resolveWaiters': {
      const results = command.args.resolutions.map(({ result }) => result);
      return { rows: results.length, bytes: bodyBytes(results) };
    }
    case 'addWaiter': {
      const { wait, taken } = command.args;
      return { rows: 2, bytes: bodyBytes(taken ? [wait.record, taken.result] : [wait.record]) };
    }
    case 'saveMail':
      return { rows: 1, bytes: command.args.body?.byteLength ?? 0 };
    case 'saveSchedule':
      return { rows: 2, bytes: bodyBytes([{ content: command.args.schedule.plan }]) };
    case 'settle': {
      const { events, follows = [] } = command.args.settlement.change;
      return { rows: 1 + follows.length, bytes: answerBytes(events) + bodyBytes(follows) };
    }
    case 'endRuns': {
      const follows = command.args.endings.flatMap((end) => end.follows);
      return { rows: command.args.endings.length + follows.length, bytes: bodyBytes(follows) };
    }
    case 'claim':
      return { rows: command.args.request.limit, bytes: 0 };
    case 'release':
      return { rows: command.args.claims.length, bytes: 0 };
    case 'cancel':
      return { rows: command.args.keys.length, bytes: 0 };
    case 'deleteDead':
      return { rows: command.args.places.length, bytes: 0 };
    case 'emptyQueue':
      return { rows: command.args.count, bytes: 0 };
    case 'addEndpoints':
      return { rows: command.args.endpoints.length, bytes: 0 };
    case 'dropExpired':
      return { rows: command.args.rowsMax, bytes: 0 };
    default:
      return { rows: 1, bytes: 0 };
  }
}

/** The endpoint's answer is the last value of an event's detail; a burial holds the same bytes. */
function answerBytes(events: readonly StoredEvent[]): number {
  return events.reduce((sum, [, , detail]) => {
    const body = detail?.at(-1);
    return sum + (body instanceof Uint8Array ? body.byteLength : 0);
  }, 0);
}

function bodyBytes(messages: readonly { content: readonly unknown[] }[]): number {
  return messages.reduce((sum, { content }) => {
    const body = content.at(-1);
    return sum + (body instanceof Uint8Array ? body.byteLength : 0);
  }, 0);
}
