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
    return this.#collect(limit, declaredBytes !== undefined);
  }

  /** Gives the memory back. Call it once the bytes are no longer needed; calling it again does nothing. */
  release(): void {
    this.#budget.giveBack(this.#bytesTaken);
    this.#bytesTaken = 0;
  }

  #collect(limit: BodyLimit, isPaidFor: boolean): Promise<Uint8Array> {
    const request = this.#request;
    const { memoryPerByte = 1 } = limit;
    return new Promise((resolve, reject) => {
      const chunks: Buffer[] = [];
      let bytes = 0;
      const stop = (): void => {
        request.off('data', onData);
        request.off('end', onEnd);
        request.off('close', onClose);
      };
      const onData = (chunk: Buffer): void => {
        bytes += chunk.length;
        const refused =
          bytes > limit.bytesMax
            ? bodyTooLarge(limit)
            : isPaidFor
              ? undefined
              : this.#tryTake(chunk.length * memoryPerByte);
        if (refused === undefined) {
          chunks.push(chunk);
          return;
        }
        stop();
        request.pause();
        reject(refused);
      };
      const onEnd = (): void => {
        stop();
        resolve(exactCopy(chunks, bytes));
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

/** In memory of its own: a chunk is a view of the socket's 64 KiB buffer, and would keep all of it alive. */
function exactCopy(chunks: readonly Buffer[], bytes: number): Uint8Array {
  const copy = Buffer.allocUnsafeSlow(bytes);
  let at = 0;
  for (const chunk of chunks) at += chunk.copy(copy, at);
  return copy;
}

/** 413, naming the setting (messaging.md 20.2). */
export function bodyTooLarge({ bytesMax, setting }: BodyLimit): ApiError {
  return new ApiError('body_too_large', `request body too large: ${setting} is ${bytesMax} bytes`);
}
