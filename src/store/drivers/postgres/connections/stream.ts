/** Accesses the socket of a client, which the types of the client library do not declare. */
import type { Duplex } from 'node:stream';
import type pg from 'pg';
import type { Clock } from '../../../../engine/ports.ts';

/** A working server takes less time to close a connection after the client has sent its termination message. */
const TERMINATION_MS = 1_000;

export function streamOf(client: pg.ClientBase): Duplex {
  return (client as pg.ClientBase & { readonly connection: { readonly stream: Duplex } }).connection.stream;
}

/** Destroys a closing connection's socket after a timeout: otherwise a server that hangs would keep the process alive. */
export function destroyUnlessClosed(client: pg.ClientBase, clock: Clock): void {
  const stream = streamOf(client);
  const timer = clock.startTimer(TERMINATION_MS, () => stream.destroy(), 'outside');
  stream.once('close', () => timer.cancel());
}
