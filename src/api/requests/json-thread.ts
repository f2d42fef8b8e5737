/**
 * Parses large JSON in a thread of its own. A parser blocks its thread until it has finished: a batch of 100 MiB takes
 * seconds.
 */
import { Worker } from 'node:worker_threads';
import type { Clock, Timer } from '../../engine/ports.ts';
import { ApiError } from '../../protocol/errors.ts';
import type { JsonJob, JsonReply, JsonRequest } from './json-jobs.ts';
import { InvalidItems, type ItemLimits, type RequestItem } from './request-items.ts';

/** The thread is terminated after this idle time, to free its memory. */
const IDLE_MS = 5_000;

/** Maximum heap for the parsed values. JSON that needs more is rejected. */
const HEAP_MEBIBYTES_MAX = 1_024;

export class JsonThread {
  readonly #clock: Clock;
  #worker: Worker | undefined;
  #idle: Timer | undefined;
  /** The end of the last job. Jobs run one after the other, which bounds their memory and CPU. */
  #last: Promise<unknown> = Promise.resolve();
  #jobs = 0;
  #isClosed = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * Like `readItems`; the items arrive in slices. The buffer of `bytes` is transferred to the thread, and unusable afterwards.
   */
  items(bytes: Uint8Array<ArrayBuffer>, limits: ItemLimits): Promise<RequestItem[]> {
    return this.#enqueue(async () => {
      const items: RequestItem[] = [];
      let reply = await this.#request({ kind: 'items', bytes, limits }, bytes.buffer);
      while (reply.kind === 'items') {
        for (const item of reply.items) items.push(item);
        if (reply.isLast) return items;
        reply = await this.#request({ kind: 'continue' });
      }
      throw reply.kind === 'refused' ? new InvalidItems(errorOf(reply), reply.isAnySentByRun) : errorOf(reply);
    });
  }

  /** Like `parseJson`, for JSON with few values, which arrive at once. */
  value(bytes: Uint8Array, valuesMax: number): Promise<unknown> {
    return this.#valueOf({ kind: 'value', bytes, valuesMax });
  }

  /** Resolves to the `value` of `parseCheckpoint`. The buffer of `bytes` is transferred, and unusable afterwards. */
  checkpoint(bytes: Uint8Array<ArrayBuffer>, othersMax: number): Promise<unknown> {
    return this.#valueOf({ kind: 'checkpoint', bytes, othersMax }, bytes.buffer);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#idle?.cancel();
    await this.#worker?.terminate();
  }

  #valueOf(job: JsonJob, ...transferred: ArrayBuffer[]): Promise<unknown> {
    return this.#enqueue(async () => {
      const reply = await this.#request(job, ...transferred);
      if (reply.kind === 'value') return reply.value;
      throw errorOf(reply);
    });
  }

  async #enqueue<T>(job: () => Promise<T>): Promise<T> {
    this.#jobs += 1;
    this.#idle?.cancel();
    const done = this.#last.then(job);
    this.#last = done.catch(() => {}); // the caller gets the error from `done`
    try {
      return await done;
    } finally {
      this.#jobs -= 1;
      if (this.#jobs === 0 && !this.#isClosed)
        this.#idle = this.#clock.startTimer(IDLE_MS, () => this.#end(), 'upkeep');
    }
  }

  #end(): void {
    void this.#worker?.terminate();
    this.#worker = undefined;
  }

  #request(request: JsonJob | JsonRequest, ...transferred: ArrayBuffer[]): Promise<JsonReply> {
    this.#worker ??= start();
    const worker = this.#worker;
    return new Promise((resolve, reject) => {
      const onReply = (reply: JsonReply): void => {
        worker.off('error', onError).off('exit', onExit);
        resolve(reply);
      };
      const onError = (error: NodeJS.ErrnoException): void => {
        worker.off('message', onReply).off('exit', onExit);
        this.#worker = undefined;
        const isTooMuch = error.code === 'ERR_WORKER_OUT_OF_MEMORY';
        reject(
          isTooMuch ? new ApiError('body_too_large', 'request body too large: its JSON takes too much memory') : error,
        );
      };
      const onExit = (): void => {
        worker.off('message', onReply).off('error', onError);
        this.#worker = undefined;
        reject(new ApiError('unavailable', 'the server is shutting down'));
      };
      worker.once('message', onReply).once('error', onError).once('exit', onExit);
      worker.postMessage(request, transferred);
    });
  }
}

function start(): Worker {
  // The sources run as .ts, the published package as .js.
  const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js';
  const worker = new Worker(new URL(`./json-worker.${extension}`, import.meta.url), {
    resourceLimits: { maxOldGenerationSizeMb: HEAP_MEBIBYTES_MAX },
  });
  worker.unref(); // does not keep the process alive; the connection of a waiting request does
  return worker;
}

function errorOf(reply: JsonReply): unknown {
  if (reply.kind === 'refused') return new ApiError(reply.code, reply.message);
  return new Error(`the thread that parses JSON failed: ${reply.kind === 'failed' ? reply.reason : reply.kind}`);
}
