/**
 * Reads one request's body as it came: any content type, any method, never inflated, never above its limit, and
 * within the budget that all requests share.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Slices } from '../engine/slices.ts';
import { ApiError } from '../protocol/errors.ts';
import type { BodyBudget } from './body-budget.ts';

/** The most that `read` accepts, and the setting that a refusal names. */
export interface BodyLimit {
  bytesMax: number;
  setting: string;
  /** Where the contract has a name for this limit: the refusal then has the hosted service's words (contract M 20.1). */
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

const EMPTY: Bytes = new Uint8Array(0);
/** In memory of their own and of just their size: a view of a larger buffer would go to other threads whole. */
type Bytes = Uint8Array<ArrayBuffer>;

/** Bytes set aside at a time for a body whose length was not announced: as many as are there already, within these bounds. */
const BLOCK_BYTES = { min: 4096, max: 1024 * 1024 };

interface Block {
  bytes: Buffer<ArrayBuffer>;
  /** How much of it is filled. */
  length: number;
}

export class RequestBody {
  readonly #request: IncomingMessage;
  readonly #response: ServerResponse;
  readonly #budget: BodyBudget;
  readonly #slices: () => Slices;
  #bytesTaken = 0;

  constructor(request: IncomingMessage, response: ServerResponse, budget: BodyBudget, slices: () => Slices) {
    this.#request = request;
    this.#response = response;
    this.#budget = budget;
    this.#slices = slices;
  }

  /**
   * The whole body. Throws `ApiError` 413 above `limit` (at once when `Content-Length` tells, else as soon as the
   * limit is passed), 503 when the budget is used up, and `CallerGone`.
   */
  async read(limit: BodyLimit): Promise<Bytes> {
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
    return joined(await this.#collect(limit, declaredBytes), this.#slices());
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
  #collect(limit: BodyLimit, declaredBytes: number | undefined): Promise<Block[]> {
    const request = this.#request;
    const { bytesMax, memoryPerByte = 1 } = limit;
    return new Promise((resolve, reject) => {
      // Gone while something else was awaited: `close` has been, and nothing else would come.
      if (request.destroyed) {
        reject(new CallerGone());
        return;
      }
      let block: Block = { bytes: Buffer.allocUnsafeSlow(declaredBytes ?? 0), length: 0 };
      const blocks = [block];
      let length = 0;
      const stop = (): void => {
        request.off('data', onData);
        request.off('end', onEnd);
        request.off('close', onClose);
      };
      /** Makes room, or says why not. */
      const addBlock = (): ApiError | undefined => {
        if (length >= bytesMax) return bodyTooLarge(limit);
        const size = Math.min(Math.max(length, BLOCK_BYTES.min), BLOCK_BYTES.max, bytesMax - length);
        const refused = this.#tryTake(size * memoryPerByte);
        if (refused !== undefined) return refused;
        block = { bytes: Buffer.allocUnsafeSlow(size), length: 0 };
        blocks.push(block);
        return undefined;
      };
      const onData = (chunk: Buffer): void => {
        for (let at = 0; at < chunk.length; ) {
          const refused = block.length === block.bytes.length ? addBlock() : undefined;
          if (refused !== undefined) {
            stop();
            request.pause();
            reject(refused);
            return;
          }
          const copied = chunk.copy(block.bytes, block.length, at);
          block.length += copied;
          length += copied;
          at += copied;
        }
      };
      const onEnd = (): void => {
        stop();
        resolve(blocks);
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

/** Copied in slices: the pages of new memory alone take tens of milliseconds for 100 MiB. */
async function joined(blocks: Block[], slices: Slices): Promise<Bytes> {
  const [first] = blocks;
  if (blocks.length === 1 && first && first.length === first.bytes.length) return first.bytes;
  const whole = Buffer.allocUnsafeSlow(blocks.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (let block = blocks.shift(); block; block = blocks.shift()) {
    at += block.bytes.copy(whole, at, 0, block.length);
    if (slices.isOver) await slices.next();
  }
  return whole;
}

/** 413, naming the quota or the setting (contract M 20.2, 25). */
export function bodyTooLarge({ bytesMax, setting, quota }: BodyLimit): ApiError {
  const text =
    quota === undefined
      ? `request body too large: ${setting} is ${bytesMax} bytes`
      : `quota ${quota} exceeded, current limit: ${bytesMax}`;
  return new ApiError('body_too_large', text);
}
