/**
 * Reads one request's body as it came: any content type, any method, never inflated, never above its limit, and
 * within the budget that all requests share (reliability.md 4.3).
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { ApiError } from '../protocol/errors.ts';
import type { BodyBudget } from './body-budget.ts';

/** The most that `read` accepts, and the setting that a refusal names. */
export interface BodyLimit {
  bytesMax: number;
  setting: string;
  /** Where the contract has a name for this limit: the refusal then has the hosted service's words (messaging.md 20.1). */
  quota?: string;
  /** Memory that each byte stands for in the budget: 2 where the body is parsed, so that bytes and text both count. */
  memoryPerByte?: number;
}

/** The caller went away before its body was complete: there is nobody to answer. */
export class CallerGone extends Error {
  constructor() {
    super('the caller closed the connection before the request was complete');
    this.name = 'CallerGone';
  }
}

const EMPTY = new Uint8Array(0);
const NOTHING = Buffer.alloc(0);
/** Bytes set aside at first for a body whose length was not announced. */
const CAPACITY_MIN = 4096;

export class RequestBody {
  readonly #request: IncomingMessage;
  readonly #response: ServerResponse;
  readonly #budget: BodyBudget;
  #bytesTaken = 0;

  constructor(request: IncomingMessage, response: ServerResponse, budget: BodyBudget) {
    this.#request = request;
    this.#response = response;
    this.#budget = budget;
  }

  /**
   * The whole body. Throws `ApiError` 413 above `limit` (at once when `Content-Length` tells, else as soon as the
   * limit is passed), 503 when the budget is used up, and `CallerGone`.
   */
  async read(limit: BodyLimit): Promise<Uint8Array> {
    const { headers } = this.#request;
    const declared = headers['content-length'];
    if (declared === undefined && headers['transfer-encoding'] === undefined) return EMPTY;
    const declaredBytes = declared === undefined ? undefined : Number(declared);
    if (declaredBytes !== undefined) {
      if (declaredBytes > limit.bytesMax) throw bodyTooLarge(limit);
      if (declaredBytes === 0) return EMPTY;
      const refused = this.#tryTake(declaredBytes * (limit.memoryPerByte ?? 1));
      if (refused) throw refused;
    }
    // Only now is the caller told to go on, so that a refused body is never sent.
    if (expectsContinue(this.#request)) this.#response.writeContinue();
    return this.#collect(limit, declaredBytes);
  }

  /** Gives the memory back. Call it once the bytes are no longer needed; calling it again does nothing. */
  release(): void {
    this.#budget.giveBack(this.#bytesTaken);
    this.#bytesTaken = 0;
  }

  /**
   * Pieces are copied together as they come: each would otherwise cost a few hundred bytes of its own, so that a
   * caller who sends one byte at a time could take hundreds of times the memory that the budget counts.
   */
  #collect(limit: BodyLimit, declaredBytes: number | undefined): Promise<Uint8Array> {
    const request = this.#request;
    const { bytesMax, memoryPerByte = 1 } = limit;
    return new Promise((resolve, reject) => {
      // Gone while something else was awaited: `close` has been, and nothing else would come.
      if (request.destroyed) {
        reject(new CallerGone());
        return;
      }
      // In memory of its own and of just its size: a view of a larger buffer would go to other threads whole.
      let kept = declaredBytes === undefined ? NOTHING : Buffer.allocUnsafeSlow(declaredBytes);
      let bytes = 0;
      const stop = (): void => {
        request.off('data', onData);
        request.off('end', onEnd);
        request.off('close', onClose);
      };
      /** Makes room for `needed` bytes, or says why not. */
      const grow = (needed: number): ApiError | undefined => {
        if (needed > bytesMax) return bodyTooLarge(limit);
        const capacity = Math.min(Math.max(needed, 2 * kept.length, CAPACITY_MIN), bytesMax);
        const refused = this.#tryTake((capacity - kept.length) * memoryPerByte);
        if (refused !== undefined) return refused;
        const grown = Buffer.allocUnsafeSlow(capacity);
        kept.copy(grown, 0, 0, bytes);
        kept = grown;
        return undefined;
      };
      const onData = (chunk: Buffer): void => {
        const needed = bytes + chunk.length;
        const refused = needed > kept.length ? grow(needed) : undefined;
        if (refused === undefined) {
          bytes += chunk.copy(kept, bytes);
          return;
        }
        stop();
        request.pause();
        reject(refused);
      };
      const onEnd = (): void => {
        stop();
        resolve(bytes === kept.length ? kept : exactCopy(kept, bytes));
      };
      const onClose = (): void => {
        stop();
        reject(new CallerGone());
      };
      request.on('data', onData);
      request.on('end', onEnd);
      request.on('close', onClose);
    });
  }

  /** The refusal when there is no room. */
  #tryTake(bytes: number): ApiError | undefined {
    if (!this.#budget.tryTake(bytes)) {
      return new ApiError('unavailable', 'too many request bodies are in memory, try again shortly');
    }
    this.#bytesTaken += bytes;
    return undefined;
  }
}

export function expectsContinue(request: IncomingMessage): boolean {
  return request.headers.expect?.toLowerCase() === '100-continue';
}

function exactCopy(from: Buffer, bytes: number): Uint8Array {
  const copy = Buffer.allocUnsafeSlow(bytes);
  from.copy(copy, 0, 0, bytes);
  return copy;
}

/** 413, naming the quota or the setting (messaging.md 20.2, 25). */
export function bodyTooLarge({ bytesMax, setting, quota }: BodyLimit): ApiError {
  const text =
    quota === undefined
      ? `request body too large: ${setting} is ${bytesMax} bytes`
      : `quota ${quota} exceeded, current limit: ${bytesMax}`;
  return new ApiError('body_too_large', text);
}
