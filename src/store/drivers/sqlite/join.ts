/** Joins the embedded store from a thread that has not opened it, over ports to the database threads. */

import type { MessagePort } from 'node:worker_threads';
import { GroupCommit } from '../../batches/group-commit.ts';
import { refuseToGuard, StoreEvents } from '../../connection.ts';
import { deriveStore } from '../../derive.ts';
import { StoreFatal } from '../../driver.ts';
import { isLongRead } from '../../operations/all.ts';
import type { Store } from '../../store.ts';
import { DatabaseClient } from './client.ts';
import type { DatabasePorts, Reply, Request } from './messages.ts';
import type { SqliteStoreOptions } from './open.ts';

/** The `close` of the returned store ends only this thread's use of the database. */
export function joinSqliteStore(
  ports: DatabasePorts,
  { onFatal, batch = {} }: Omit<SqliteStoreOptions, 'path' | 'limits'>,
): Store {
  const { endOfTurn } = batch;
  const events = new StoreEvents();
  const clientAt = (port: MessagePort): DatabaseClient<Request> => {
    const client = new DatabaseClient<Request>(
      (request, transferred = []) => port.postMessage(request, transferred),
      (error) => commits.fail(error),
      endOfTurn,
      events,
    );
    port.on('message', (reply: Reply) => client.receive(reply));
    port.on('close', () => client.fail(new StoreFatal('the database thread has ended')));
    return client;
  };
  const writer = clientAt(ports.writer);
  const lister = ports.lister ? clientAt(ports.lister) : writer;
  const commits = new GroupCommit((commands) => writer.run(commands), events, onFatal, batch);
  return deriveStore({
    events,
    guardProjects: refuseToGuard,
    write: (method, args) => commits.run(method, args),
    ...(endOfTurn && { endOfTurn }),
    read: (method, args) => (isLongRead(method) ? lister : writer).read(method, args),
    counts: () => commits.counts,
    close: async () => {
      await commits.close();
      await Promise.all([writer.close(), lister.close()]);
      for (const port of [ports.writer, ports.lister]) port?.close();
    },
  });
}
