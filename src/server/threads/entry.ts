/**
 * The entry point of a worker's thread. The worker is the same as in a process of its own, but gets messages from the
 * main thread.
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
import type { ThreadStart, WorkerCommand, WorkerMessage } from './messages.ts';
import { OtherThreads } from './other-threads.ts';
import { PendingCalls } from './pending-calls.ts';

if (parentPort) await run(parentPort, workerData as ThreadStart);

async function run(port: MessagePort, start: ThreadStart): Promise<void> {
  const { config, credentials, encryptionKey, rank, database } = start;
  const others = new OtherThreads(start.others);
  const send = (message: WorkerMessage): void => port.postMessage(message);
  const changes = new PendingCalls();
  const randomness = createSystemRandomness();
  const onFatal = (error: Error): void => send({ kind: 'fatal', reason: error.message });
  const log = createForwardingLog(send);
  await reportRefusal(send, async () => {
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
          await changes.call((id) => send({ kind: 'accountsChanged', id }));
        } catch (error) {
          throw new StoreUnavailable('tokens or keys have changed, but not all workers know', { cause: error });
        }
      },
    });
    const end = async (): Promise<void> => {
      await store.close();
      others.close();
      send({ kind: 'stopped' });
      port.close(); // a closed port ends the thread
    };
    port.on('message', (message: WorkerCommand) => {
      if (message.kind === 'changeKnown') changes.settle(message.id, message);
      else if (message.kind === 'stop') void worker.stop(message.limitMs).then(end);
      else void handleMessage(message, worker, config.host, send);
    });
    startIdleCollection();
    send({ kind: 'started', worker: worker.id });
  });
}

async function handleMessage(
  message: Exclude<WorkerCommand, { kind: 'changeKnown' | 'stop' }>,
  worker: RunningWorker,
  host: string,
  send: (message: WorkerMessage) => void,
): Promise<void> {
  switch (message.kind) {
    case 'listen':
      await reportRefusal(send, async () => {
        const bound = await worker.listen({ host, port: message.port, isShared: true });
        send({ kind: 'listening', ...bound });
      });
      return;
    case 'refreshAccounts':
      try {
        await worker.accounts.refresh();
        send({ kind: 'refreshed', id: message.id });
      } catch (error) {
        send({ kind: 'refreshed', id: message.id, failure: messageOf(error) });
      }
      return;
    case 'readMetrics':
      try {
        send({ kind: 'metrics', id: message.id, value: await worker.readMetrics() });
      } catch (error) {
        send({ kind: 'metrics', id: message.id, failure: messageOf(error) });
      }
      return;
  }
}

/**
 * Does `work`, and reports errors that the operator can fix to the main thread. Any other error ends the thread and the
 * process.
 */
async function reportRefusal(send: (message: WorkerMessage) => void, work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    if (!(error instanceof CannotStart || error instanceof StoreUnavailable)) throw error;
    send({ kind: 'refused', reason: error.message });
  }
}

/** Sends log events to the main thread, which alone writes the log, so that lines do not mix. */
function createForwardingLog(send: (message: WorkerMessage) => void): EventLog {
  return {
    debug: (event, fields = {}) => send({ kind: 'log', level: 'debug', event, fields }),
    info: (event, fields = {}) => send({ kind: 'log', level: 'info', event, fields }),
    warn: (event, fields = {}) => send({ kind: 'log', level: 'warn', event, fields }),
    error: (event, fields = {}) => send({ kind: 'log', level: 'error', event, fields }),
  };
}
