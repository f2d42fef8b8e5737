/** The embedded store in a thread that has not opened it: over ports to the database's threads. */

import type { MessagePort } from 'node:worker_threads';
import type { OriginLine } from '../../../engine/lanes/origin-line.ts';
import type { ClaimToken } from '../../../engine/model.ts';
import { GroupCommit } from '../../batches/group-commit.ts';
import { ALONE, type Connection } from '../../connection.ts';
import { storeOver } from '../../derive.ts';
import { StoreFatal } from '../../driver.ts';
import { isLongRead } from '../../operations/all.ts';
import type { Store } from '../../store.ts';
import { DatabaseClient, type DatabaseClientOptions } from './client.ts';
import type { DatabasePorts, Reply, Request } from './messages.ts';
import type { SqliteStoreOptions } from './open.ts';

type OnLeft = NonNullable<DatabaseClientOptions<Request>['onLeft']>;

/** Its `close` ends only this thread's use of the database. */
export function joinSqliteStore(
  ports: DatabasePorts,
  { onFatal, batch }: Omit<SqliteStoreOptions, 'path' | 'limits'>,
): Store {
  let onDue: (dueAtMs: number) => void = () => {};
  let onWaitingLine: (line: OriginLine) => void = () => {};
  let onCancelled: (claimTokens: ClaimToken[]) => void = () => {};
  const fail = (error: Error): void => queue.fail(error);
  const onLeft: OnLeft = ({ dueAtMs, waitingLines, cancelledClaims }) => {
    if (dueAtMs !== null) onDue(dueAtMs);
    for (const line of waitingLines) onWaitingLine(line);
    if (cancelledClaims.length > 0) onCancelled(cancelledClaims);
  };
  const endOfTurn = batch?.endOfTurn && { endOfTurn: batch.endOfTurn };
  const writer = talkOver(ports.writer, { onFatal: fail, onLeft, ...endOfTurn });
  const lister = ports.lister ? talkOver(ports.lister, { onFatal: fail, ...endOfTurn }) : writer;
  const queue = new GroupCommit({ flush: (commands) => writer.run(commands), onFatal, ...batch });
  const connection: Connection = {
    ...ALONE,
    write: (method, args) => queue.run(method, args),
    ...endOfTurn,
    read: (method, args) => (isLongRead(method) ? lister : writer).read(method, args),
    onDue: (listener) => {
      onDue = listener;
      queue.listen(listener);
    },
    onWaitingLine: (listener) => {
      onWaitingLine = listener;
    },
    onCancelled: (listener) => {
      onCancelled = listener;
      queue.listenForCancelled(listener);
    },
    onCommitUnknown: (listener) => queue.listenForCommitUnknown(listener),
    counts: () => queue.counts,
    close: async () => {
      await queue.close();
      await Promise.all([writer.close(), lister.close()]);
      for (const port of [ports.writer, ports.lister]) port?.close();
    },
  };
  return storeOver(connection);
}

function talkOver(port: MessagePort, options: Omit<DatabaseClientOptions<Request>, 'send'>): DatabaseClient<Request> {
  const requests = new DatabaseClient<Request>({
    send: (request, handedOver = []) => port.postMessage(request, handedOver),
    ...options,
  });
  port.on('message', (reply: Reply) => requests.receive(reply));
  port.on('close', () => requests.fail(new StoreFatal('the database thread has ended')));
  return requests;
}
