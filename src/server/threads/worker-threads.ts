/** Runs several workers in one process, each in a thread of its own, all on one port. */
import type { Config } from '../../config/table.ts';
import type { Millis } from '../../engine/model.ts';
import type { Reading } from '../../telemetry/metrics/instruments.ts';
import type { ServerContext } from '../context.ts';
import { checkIsFree } from '../listen.ts';
import { connectAll, type WorkerPorts } from './other-threads.ts';
import { WorkerThread } from './worker-thread.ts';

export class WorkerThreads {
  readonly #config: Config;
  readonly #threads: readonly WorkerThread[];

  private constructor(config: Config, threads: readonly WorkerThread[]) {
    this.#config = config;
    this.#threads = threads;
  }

  /**
   * Resolves when all workers deliver; no worker listens yet. If a worker fails, stops all threads and throws
   * `CannotStart`.
   */
  static async start(context: ServerContext): Promise<WorkerThreads> {
    const { config, credentials, store, log, onFatal } = context;
    const { encryptionKey } = context.sealer;
    const threads: WorkerThread[] = [];
    const startOne = async (others: WorkerPorts): Promise<void> => {
      const database = await store.connect?.();
      const onAccountsChanged = (changing: WorkerThread): Promise<void> =>
        refreshAll(threads.filter((thread) => thread !== changing));
      const rank = others.own === 0 ? ('first' as const) : ('other' as const);
      const started = { config, credentials, encryptionKey, rank, others, ...(database && { database }) };
      threads.push(await WorkerThread.start(started, { log, onFatal, onAccountsChanged }));
    };
    const starts = await Promise.allSettled(connectAll(config.workers).map(startOne));
    const failed = starts.find((start) => start.status === 'rejected');
    if (failed) {
      await Promise.all(threads.map((thread) => thread.stop(0)));
      throw failed.reason;
    }
    return new WorkerThreads(config, threads);
  }

  /** Makes all workers listen on the port of the first worker, and returns the URL. Throws `CannotStart`. */
  async listen(): Promise<string> {
    const { host, port } = this.#config;
    if (port !== 0) await checkIsFree({ host, port });
    const [first, ...others] = this.#threads;
    if (first === undefined) throw new Error('there is no worker');
    const bound = await first.listen(port);
    await Promise.all(others.map((thread) => thread.listen(bound.port)));
    return bound.url;
  }

  /** Resolves when all workers use the current tokens and signing keys of the store. */
  refreshAccounts(): Promise<void> {
    return refreshAll(this.#threads);
  }

  /** The metrics of each worker. */
  readMetrics(): Promise<Reading[]> {
    return Promise.all(this.#threads.map((thread) => thread.readMetrics()));
  }

  /** Accepts no more messages, waits up to `limitMs` for attempts in flight, then ends all threads. */
  async stop(limitMs: Millis): Promise<void> {
    await Promise.all(this.#threads.map((thread) => thread.stop(limitMs)));
  }
}

async function refreshAll(threads: readonly WorkerThread[]): Promise<void> {
  await Promise.all(threads.map((thread) => thread.refreshAccounts()));
}
