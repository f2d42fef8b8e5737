/** Accesses the socket of a client. The types of the client library do not declare it. */
import type { Duplex } from 'node:stream';
import type pg from 'pg';
import type { Clock } from '../../../../engine/ports.ts';

/** A working server closes a connection sooner after the client has sent its termination message. */
const TERMINATION_MS = 1_000;

export function streamOf(client: pg.ClientBase): Duplex {
  return (client as pg.ClientBase & { readonly connection: { readonly stream: Duplex } }).connection.stream;
}

/** Destroys the socket of a closing connection after a timeout: with a server that hangs, it would keep the process alive. */
export function destroyUnlessClosed(client: pg.ClientBase, clock: Clock): void {
  const stream = streamOf(client);
  const timer = clock.startTimer(TERMINATION_MS, () => stream.destroy(), 'outside');
  stream.once('close', () => timer.cancel());
}
