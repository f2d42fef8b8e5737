/** What is below a connection of the client library: the library declares the class of its connections, not that a client has one. */
import type { Duplex } from 'node:stream';
import type pg from 'pg';
import type { Clock } from '../../../../engine/ports.ts';

/** A working server closes a connection sooner after the client has announced its end. */
const FAREWELL_MS = 1_000;

export function streamOf(client: pg.ClientBase): Duplex {
  return (client as pg.ClientBase & { readonly connection: { readonly stream: Duplex } }).connection.stream;
}

/** For a connection that is being ended: one to a server that hangs would stay, and keep its process. */
export function cutUnlessEnded(client: pg.ClientBase, clock: Clock): void {
  const stream = streamOf(client);
  const timer = clock.startTimer(FAREWELL_MS, () => stream.destroy(), 'outside');
  stream.once('close', () => timer.cancel());
}
