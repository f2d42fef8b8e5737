/** Two workers that are connected like threads of one process, but run in this thread, so that one test clock serves both. */
import type { Credentials } from '../../../src/accounts/open-accounts.ts';
import { ensureSealer, joinStore, openStore } from '../../../src/admin/open-store.ts';
import type { Config } from '../../../src/config/table.ts';
import type { EventLog, Machine } from '../../../src/engine/ports.ts';
import { connectAll, OtherThreads } from '../../../src/server/threads/other-threads.ts';
import { type RunningWorker, startWorker } from '../../../src/server/worker.ts';
import { createSystemRandomness } from '../../../src/system/system.ts';

export interface TwoWorkers {
  /** The URL of each worker, by its number. Each worker has its own port. */
  urls: readonly string[];
  stop(): Promise<void>;
}

interface Needs {
  log: EventLog;
  credentials: Credentials;
  onFatal: (error: Error) => void;
  clock: Machine;
}

/** Starts two workers on the embedded database. */
export async function startTwoWorkers(
  config: Config,
  { log, credentials, onFatal, clock }: Needs,
): Promise<TwoWorkers> {
  const shared = await openStore(config, { onFatal, create: true, log, testClock: clock });
  const sealer = await ensureSealer(config, createSystemRandomness(), shared);
  const closing: (() => Promise<unknown>)[] = [() => shared.close()];
  const stop = async (): Promise<void> => {
    for (const close of closing.reverse()) await close();
  };
  const urls: string[] = [];
  const workers: RunningWorker[] = [];
  const onAccountsChanged = async (): Promise<void> => {
    for (const { accounts } of workers) await accounts.refresh();
  };
  for (const ports of connectAll(2)) {
    if (!shared.connect) throw new Error('the workers must share an embedded database');
    const store = joinStore(await shared.connect(), { onFatal });
    closing.push(() => store.close());
    const others = new OtherThreads(ports);
    const rank = ports.own === 0 ? 'first' : 'other';
    const options = {
      config,
      store,
      sealer,
      credentials,
      log,
      machine: clock,
      rank,
      others,
      isRecovered: true,
      onAccountsChanged,
    } as const;
    const worker: RunningWorker = await startWorker(options);
    workers.push(worker);
    closing.push(
      () => worker.stop(0),
      async () => others.close(),
    );
    urls.push((await worker.listen({ host: config.host, port: 0, isShared: false })).url);
  }
  return { urls, stop };
}
