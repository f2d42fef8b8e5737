/**
 * Reads one request's body unchanged: any content type, any method, never decompressed. It stays below its limit, and
 * within the memory budget of all requests.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Slices } from '../../engine/loops/slices.ts';
import type { ProjectId } from '../../engine/model.ts';
import { ApiError } from '../../protocol/errors.ts';
import type { MemoryBudget } from '../edge/memory-budget.ts';

/** The largest body that `read` accepts, and the setting that a refusal names. */
export interface BodyLimit {
  bytesMax: number;
  setting: string;
  /**
   * The contract's name for this limit, if there is one: the refusal then uses the hosted service's words
   * (contract M 20.1).
   */
  quota?: string;
  /**
   * Memory that each byte counts for in the budget: 2 where the body is parsed, since bytes and text are both in
   * memory.
   */
  memoryPerByte?: number;
}

/** The client left before its body was complete, so no answer is sent. */
export class ClientDisconnected extends Error {
  constructor() {
    super('the caller closed the connection before the request was complete');
    this.name = 'ClientDisconnected';
  }
}

const EMPTY: Bytes = new Uint8Array(0);
/**
 * In a buffer of their own and of just their size: with a view of a larger buffer, the whole buffer goes to other
 * threads.
 */
type Bytes = Uint8Array<ArrayBuffer>;

/** Size of a new block: as many bytes as have arrived, within these bounds. So memory follows bytes that were sent. */
const BLOCK_BYTES = { min: 4096, max: 1024 * 1024 };

interface Block {
  bytes: Buffer<ArrayBuffer>;
  /** Bytes of it that are filled. */
  length: number;
}

export class RequestBody {
  readonly #request: IncomingMessage;
  readonly #response: ServerResponse;
  readonly #budget: MemoryBudget;
  readonly #slices: () => Slices;
  /** 0: no project is known. */
  #projectId: ProjectId = 0;
  #bytesTaken = 0;

  constructor(request: IncomingMessage, response: ServerResponse, budget: MemoryBudget, slices: () => Slices) {
    this.#request = request;
    this.#response = response;
    this.#budget = budget;
    this.#slices = slices;
  }

  /** Whose share of the budget the body takes. Call it before `read`. */
  countFor(projectId: ProjectId): void {
    this.#projectId = projectId;
  }

  /**
   * The whole body. Throws `ApiError` 413 above `limit`: at once when `Content-Length` says so, else as soon as the
   * limit is passed. Throws 503 in the same way when the budget has no room, and `CallerGone`. Memory is taken only as
   * bytes arrive: otherwise a caller could hold it by declaring a length.
   */
  read(limit: BodyLimit): Promise<Bytes> {
    const { headers } = this.#request;
    const declared = headers['content-length'];
    if (declared === undefined && headers['transfer-encoding'] === undefined) return Promise.resolve(EMPTY);
    const declaredBytes = declared === undefined ? undefined : Number(declared);
    if (declaredBytes !== undefined) {
      if (declaredBytes > limit.bytesMax) return Promise.reject(bodyTooLarge(limit));
      if (declaredBytes === 0) return Promise.resolve(EMPTY);
      const refused = this.#refusalOf(declaredBytes * (limit.memoryPerByte ?? 1));
      if (refused) return Promise.reject(refused);
    }
    // `100 Continue` is sent only here: a client that waits for it never sends a refused body.
    if (expectsContinue(this.#request)) this.#response.writeContinue();
    return this.#collect(limit, declaredBytes);
  }

  /** Gives the memory back to the budget. Call it when the bytes are no longer needed; a second call does nothing. */
  release(): void {
    this.#budget.release(this.#projectId, this.#bytesTaken);
    this.#bytesTaken = 0;
  }

  /**
   * Pieces are copied together as they arrive, since each piece costs a few hundred bytes more. Otherwise a client that
   * sends single bytes could take hundreds of times the memory that the budget counts.
   */
  #collect(limit: BodyLimit, declaredBytes: number | undefined): Promise<Bytes> {
    const request = this.#request;
    const { bytesMax, memoryPerByte = 1 } = limit;
    // No block goes beyond it.
    const lengthMax = declaredBytes ?? bytesMax;
    return new Promise((resolve, reject) => {
      // The client left while something else was awaited: `close` has already been emitted, and no event would follow.
      if (request.destroyed) {
        reject(new ClientDisconnected());
        return;
      }
      let block: Block = { bytes: Buffer.alloc(0), length: 0 };
      const blocks: Block[] = [];
      let length = 0;
      const stop = (): void => {
        request.off('data', onData);
        request.off('end', onEnd);
        request.off('close', onClose);
      };
      /** Adds an empty block for `arrived` bytes or some of them, or returns the refusal. */
      const addBlock = (arrived: number): ApiError | undefined => {
        if (length >= bytesMax) return bodyTooLarge(limit);
        const size = Math.min(Math.max(length, arrived, BLOCK_BYTES.min), BLOCK_BYTES.max, lengthMax - length);
        const refused = this.#refusalOf(size * memoryPerByte);
        if (refused !== undefined) return refused;
        this.#take(size * memoryPerByte);
        block = { bytes: Buffer.allocUnsafeSlow(size), length: 0 };
        blocks.push(block);
        return undefined;
      };
      const onData = (chunk: Buffer): void => {
        for (let at = 0; at < chunk.length; ) {
          const refused = block.length === block.bytes.length ? addBlock(chunk.length - at) : undefined;
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
        const isWhole = blocks.length === 1 && block.length === block.bytes.length;
        resolve(isWhole ? block.bytes : joinBlocks(blocks, this.#slices()));
      };
      const onClose = (): void => {
        stop();
        reject(new ClientDisconnected());
      };
      request.on('data', onData);
      request.on('end', onEnd);
      request.on('close', onClose);
    });
  }

  /** The refusal when there is no room for `bytes` more. */
  #refusalOf(bytes: number): ApiError | undefined {
    if (this.#budget.hasCapacity(this.#projectId, bytes, this.#bytesTaken)) return undefined;
    return new ApiError('unavailable', 'too many request bodies are in memory, try again shortly');
  }

  #take(bytes: number): void {
    this.#budget.reserve(this.#projectId, bytes);
    this.#bytesTaken += bytes;
  }
}

export function expectsContinue(request: IncomingMessage): boolean {
  return request.headers.expect?.toLowerCase() === '100-continue';
}

/** Copied in slices: the pages of new memory alone take tens of milliseconds for 100 MiB. */
async function joinBlocks(blocks: Block[], slices: Slices): Promise<Bytes> {
  const whole = Buffer.allocUnsafeSlow(blocks.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (let block = blocks.shift(); block; block = blocks.shift()) {
    at += block.bytes.copy(whole, at, 0, block.length);
    // Frees the block now: until garbage is collected, the body would be in memory twice.
    block.bytes.buffer.transfer(0);
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
