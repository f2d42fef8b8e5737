/** Entry point of a database thread, which keeps fsyncs and long lists off the event loop of the server. */
import { type MessagePort, parentPort, workerData } from 'node:worker_threads';
import { startIdleCollection } from '../../../system/memory.ts';
import { migrate } from '../../migrations/index.ts';
import { DatabaseServer } from './database-server.ts';
import { SqliteDriver } from './driver.ts';
import type { Reply, ThreadStart } from './messages.ts';

if (parentPort) await serve(parentPort, workerData as ThreadStart);

async function serve(owner: MessagePort, { path, role, limits }: ThreadStart): Promise<void> {
  let driver: SqliteDriver;
  try {
    driver = new SqliteDriver({ path, readOnly: role === 'reader' });
    if (role === 'writer') await migrate(driver);
  } catch (error) {
    const refused: Reply = { kind: 'refused', name: nameOf(error), reason: reasonOf(error) };
    owner.postMessage(refused);
    owner.close();
    return;
  }
  startIdleCollection();
  new DatabaseServer(driver, owner, limits).start();
}

function nameOf(error: unknown): string {
  return error instanceof Error ? error.name : 'Error';
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
