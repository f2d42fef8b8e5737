/**
 * Reads the body of a request unchanged, whatever its content type, method and encoding. Its length is limited, and its memory
 * counts against the budget of all requests.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Slices } from '../../engine/loops/slices.ts';
import type { ProjectId } from '../../engine/model.ts';
import { ApiError } from '../../protocol/errors.ts';
import type { MemoryBudget } from '../edge/memory-budget.ts';

/** The longest body that `read` accepts, and the setting that its error names. */
export interface BodyLimit {
  bytesMax: number;
  setting: string;
  /**
   * The contract's name for this limit, if there is one. The error then has the text of the hosted service (contract M 20.1).
   */
  quota?: string;
  /**
   * Memory that the budget counts for each byte: 2 if the body is parsed, since bytes and text are both in memory. Default: 1.
   */
  memoryPerByte?: number;
}

/** The client has disconnected before its request was complete, so no response is sent. */
export class ClientDisconnected extends Error {
  constructor() {
    super('the caller closed the connection before the request was complete');
    this.name = 'ClientDisconnected';
  }
}

const EMPTY: Bytes = new Uint8Array(0);
/**
 * Bytes in a buffer of exactly their size. A view of a larger buffer would be sent to other threads with the whole
 * buffer.
 */
type Bytes = Uint8Array<ArrayBuffer>;

/** Size of a new block: as many bytes as have arrived, within these bounds. So memory grows with the bytes sent. */
const BLOCK_BYTES = { min: 4096, max: 1024 * 1024 };

interface Block {
  bytes: Buffer<ArrayBuffer>;
  /** Number of bytes that are filled. */
  length: number;
}

export class RequestBody {
  readonly #request: IncomingMessage;
  readonly #response: ServerResponse;
  readonly #budget: MemoryBudget;
  readonly #slices: () => Slices;
  /** 0 if the project is not known. */
  #projectId: ProjectId = 0;
  #bytesReserved = 0;

  constructor(request: IncomingMessage, response: ServerResponse, budget: MemoryBudget, slices: () => Slices) {
    this.#request = request;
    this.#response = response;
    this.#budget = budget;
    this.#slices = slices;
  }

  /** Sets the project whose budget the body counts against. Call this before `read`. */
  countFor(projectId: ProjectId): void {
    this.#projectId = projectId;
  }

  /**
   * Reads the whole body. Throws `ApiError` 413 for a body longer than `limit`: at once if `Content-Length` exceeds the
   * limit, otherwise when too many bytes have arrived. Throws 503 if the budget is exhausted, and `ClientDisconnected`.
   * Memory is reserved only as bytes arrive: otherwise a client could reserve memory by declaring a length.
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
    // `100 Continue` is sent only here, so that a client that waits for this response never sends a rejected body.
    if (expectsContinue(this.#request)) this.#response.writeContinue();
    return this.#collect(limit, declaredBytes);
  }

  /** Releases the reserved memory. Call this when the bytes are no longer needed. Idempotent. */
  release(): void {
    this.#budget.release(this.#projectId, this.#bytesReserved);
    this.#bytesReserved = 0;
  }

  /**
   * Chunks are copied into blocks as they arrive, since each chunk has an overhead of a few hundred bytes. Otherwise a client
   * that sends single bytes could take hundreds of times the memory that the budget counts.
   */
  #collect(limit: BodyLimit, declaredBytes: number | undefined): Promise<Bytes> {
    const request = this.#request;
    const { bytesMax, memoryPerByte = 1 } = limit;
    // The maximum of the total length of all blocks.
    const lengthMax = declaredBytes ?? bytesMax;
    return new Promise((resolve, reject) => {
      // The client has already disconnected: `close` was emitted, and no event would follow.
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
      /** Adds an empty block for some or all of `arrived` bytes, or returns an error. */
      const addBlock = (arrived: number): ApiError | undefined => {
        if (length >= bytesMax) return bodyTooLarge(limit);
        const size = Math.min(Math.max(length, arrived, BLOCK_BYTES.min), BLOCK_BYTES.max, lengthMax - length);
        const refused = this.#refusalOf(size * memoryPerByte);
        if (refused !== undefined) return refused;
        this.#reserve(size * memoryPerByte);
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

  /** The error if the budget has no capacity for `bytes` more. */
  #refusalOf(bytes: number): ApiError | undefined {
    if (this.#budget.hasCapacity(this.#projectId, bytes, this.#bytesReserved)) return undefined;
    return new ApiError('unavailable', 'too many request bodies are in memory, try again shortly');
  }

  #reserve(bytes: number): void {
    this.#budget.reserve(this.#projectId, bytes);
    this.#bytesReserved += bytes;
  }
}

export function expectsContinue(request: IncomingMessage): boolean {
  return request.headers.expect?.toLowerCase() === '100-continue';
}

/** Joins blocks in time slices: the page faults of new memory alone take tens of milliseconds for 100 MiB. */
async function joinBlocks(blocks: Block[], slices: Slices): Promise<Bytes> {
  const whole = Buffer.allocUnsafeSlow(blocks.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (let block = blocks.shift(); block; block = blocks.shift()) {
    at += block.bytes.copy(whole, at, 0, block.length);
    // Frees the block now: otherwise the body would be in memory twice until garbage is collected.
    block.bytes.buffer.transfer(0);
    if (slices.isOver) await slices.next();
  }
  return whole;
}

/** The 413 that names the quota or the setting (contract M 20.2, 25). */
export function bodyTooLarge({ bytesMax, setting, quota }: BodyLimit): ApiError {
  const text =
    quota === undefined
      ? `request body too large: ${setting} is ${bytesMax} bytes`
      : `quota ${quota} exceeded, current limit: ${bytesMax}`;
  return new ApiError('body_too_large', text);
}
