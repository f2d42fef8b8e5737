/**
 * Entry of a worker's thread. The worker is the same as in a process of its own; messages tell it when to listen and to
 * stop.
 */

import { type MessagePort, parentPort, workerData } from 'node:worker_threads';
import { joinStore, messageOf, openStore } from '../../admin/open-store.ts';
import type { EventLog } from '../../engine/ports.ts';
import { StoreUnavailable } from '../../engine/store-errors.ts';
import { CannotStart } from '../../system/cannot-start.ts';
import { startIdleCollection } from '../../system/memory.ts';
import { createSystemRandomness, systemClock } from '../../system/system.ts';
import { openMetrics } from '../metrics.ts';
import { type RunningWorker, startWorker } from '../worker.ts';
import type { FromWorker, ThreadStart, ToWorker } from './messages.ts';
import { OtherThreads } from './other-threads.ts';
import { PendingCalls } from './pending-calls.ts';

if (parentPort) await run(parentPort, workerData as ThreadStart);

async function run(port: MessagePort, start: ThreadStart): Promise<void> {
  const { config, credentials, encryptionKey, rank, database } = start;
  const others = new OtherThreads(start.others);
  const tell = (message: FromWorker): void => port.postMessage(message);
  const changes = new PendingCalls();
  const randomness = createSystemRandomness();
  const onFatal = (error: Error): void => tell({ kind: 'fatal', reason: error.message });
  const log = logOver(tell);
  await orRefuse(tell, async () => {
    const metrics = openMetrics(config);
    const watchBatches = metrics?.watchBatches;
    const store = database
      ? joinStore(database, { onFatal, watchBatches })
      : await openStore(config, { onFatal, create: false, log, watchBatches });
    const worker = await startWorker({
      config,
      store,
      sealer: { encryptionKey, randomBytes: (count) => randomness.bytes(count) },
      credentials,
      log,
      metrics,
      machine: systemClock,
      rank,
      others,
      isRecovered: database !== undefined,
      onAccountsChanged: async () => {
        try {
          await changes.ask((id) => tell({ kind: 'accountsChanged', id }));
        } catch (error) {
          throw new StoreUnavailable('tokens or keys have changed, but not all workers know', { cause: error });
        }
      },
    });
    const end = async (): Promise<void> => {
      await store.close();
      others.close();
      tell({ kind: 'stopped' });
      port.close(); // this ends the thread
    };
    port.on('message', (message: ToWorker) => {
      if (message.kind === 'changeKnown') changes.settle(message.id, message);
      else if (message.kind === 'stop') void worker.stop(message.limitMs).then(end);
      else void follow(message, worker, config.host, tell);
    });
    startIdleCollection();
    tell({ kind: 'started', worker: worker.id });
  });
}

async function follow(
  message: Exclude<ToWorker, { kind: 'changeKnown' | 'stop' }>,
  worker: RunningWorker,
  host: string,
  tell: (message: FromWorker) => void,
): Promise<void> {
  switch (message.kind) {
    case 'listen':
      await orRefuse(tell, async () => {
        const bound = await worker.listen({ host, port: message.port, isShared: true });
        tell({ kind: 'listening', ...bound });
      });
      return;
    case 'refreshAccounts':
      try {
        await worker.accounts.refresh();
        tell({ kind: 'refreshed', id: message.id });
      } catch (error) {
        tell({ kind: 'refreshed', id: message.id, failure: messageOf(error) });
      }
      return;
    case 'readMetrics':
      try {
        tell({ kind: 'metrics', id: message.id, value: await worker.readMetrics() });
      } catch (error) {
        tell({ kind: 'metrics', id: message.id, failure: messageOf(error) });
      }
      return;
  }
}

/** Reports problems that the operator can repair. Any other error ends the thread, and with it the process. */
async function orRefuse(tell: (message: FromWorker) => void, work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    if (!(error instanceof CannotStart || error instanceof StoreUnavailable)) throw error;
    tell({ kind: 'refused', reason: error.message });
  }
}

/** Sends log lines to the main thread: one thread writes the log, so that lines do not mix. */
function logOver(tell: (message: FromWorker) => void): EventLog {
  return {
    debug: (event, fields = {}) => tell({ kind: 'log', level: 'debug', event, fields }),
    info: (event, fields = {}) => tell({ kind: 'log', level: 'info', event, fields }),
    warn: (event, fields = {}) => tell({ kind: 'log', level: 'warn', event, fields }),
    error: (event, fields = {}) => tell({ kind: 'log', level: 'error', event, fields }),
  };
}
