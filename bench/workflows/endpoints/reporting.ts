/** The endpoint's end of its IPC channel, and the counter of its network traffic. */
import { subscribe } from 'node:diagnostics_channel';
import type { Socket } from 'node:net';
import type { EndpointCommand, EndpointEvent } from '../endpoint-process.ts';

const open = new Set<Socket>();
let closedBytes = 0;
const bodyBytes: number[] = [];

/** Counts every protocol and library, since all of them use sockets of `node:net`. */
for (const channel of ['net.client.socket', 'net.server.socket']) {
  subscribe(channel, (message) => {
    const { socket } = message as { socket: Socket };
    open.add(socket);
    socket.once('close', () => {
      open.delete(socket);
      closedBytes += bytesOf(socket);
    });
  });
}

function bytesOf(socket: Socket): number {
  return socket.bytesRead + socket.bytesWritten;
}

let ended: number[] = [];
let handled = 0;
let isDue = false;

/** Reports that the server has confirmed the end of run `number`. */
export function reportEnd(number: number): void {
  ended.push(number);
  reportSoon();
}

/** Reports that the server has the result of a delivery with a body of `bytes` bytes. */
export function reportHandled(bytes: number): void {
  handled += 1;
  bodyBytes.push(bytes);
  reportSoon();
}

/** Sends one event per turn of the event loop, so that reporting costs little. */
function reportSoon(): void {
  if (isDue) return;
  isDue = true;
  setImmediate(() => {
    isDue = false;
    if (ended.length > 0) send({ kind: 'ended', numbers: ended });
    if (handled > 0) send({ kind: 'handled', count: handled });
    ended = [];
    handled = 0;
  });
}

/** Reports the port, then handles the parent's commands, and exits with the parent. */
export function announce(port: number): void {
  process.on('message', ({ kind }: EndpointCommand) => {
    const bytes = [...open].reduce((sum, socket) => sum + bytesOf(socket), closedBytes);
    send({ kind, bytes, bodyBytes });
  });
  process.once('disconnect', () => process.exit(0));
  send({ kind: 'listening', port });
}

function send(event: EndpointEvent): void {
  process.send?.(event);
}
