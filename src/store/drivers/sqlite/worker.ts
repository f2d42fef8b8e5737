/** Entry of a database thread: an fsync, or a list over many rows, must not stop the server's event loop. */
import { type MessagePort, parentPort, workerData } from 'node:worker_threads';
import { StoreUnavailable } from '../../../engine/stores.ts';
import { BatchRunner } from '../../batch.ts';
import { StoreFatal } from '../../driver.ts';
import { migrate } from '../../migrations/index.ts';
import { runRead } from '../../reads.ts';
import { SqliteDriver } from './driver.ts';
import type { Reply, Request, ThreadOptions } from './messages.ts';

if (parentPort) await serve(parentPort, workerData as ThreadOptions);

async function serve(port: MessagePort, { path, role }: ThreadOptions): Promise<void> {
  const reply = (message: Reply): void => port.postMessage(message);
  let driver: SqliteDriver;
  try {
    driver = new SqliteDriver({ path, readOnly: role === 'reader' });
    if (role === 'writer') await migrate(driver);
  } catch (error) {
    reply({ kind: 'refused', name: nameOf(error), reason: reasonOf(error) });
    port.close();
    return;
  }
  const runner = new BatchRunner(driver);

  async function answer(request: Request): Promise<void> {
    switch (request.kind) {
      case 'batch':
        reply({ kind: 'outcome', id: request.id, outcome: await runner.run(request.commands) });
        // After the answer, so that nobody waits for it but the next batch.
        driver.maintain();
        return;
      case 'read':
        reply({ kind: 'answer', id: request.id, answer: await runRead(driver, request.method, request.args) });
        return;
      case 'close':
        await driver.close();
        reply({ kind: 'closed', id: request.id });
        port.close();
        return;
    }
  }

  port.on('message', (request: Request) => {
    answer(request).catch((error: unknown) => {
      if (error instanceof StoreFatal) {
        reply({ kind: 'fatal', reason: reasonOf(error) });
        port.close();
        return;
      }
      const failure = error instanceof StoreUnavailable ? 'unavailable' : 'rejected';
      reply({ kind: 'failed', id: request.id, failure, reason: reasonOf(error) });
    });
  });
  reply({ kind: 'ready' });
}

function nameOf(error: unknown): string {
  return error instanceof Error ? error.name : 'Error';
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
