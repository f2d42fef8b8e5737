/**
 * A process that sends pipelined requests over many connections, as fast as they are accepted, and replaces closed connections. With
 * a fourth argument, each connection sends that many requests, once.
 */
import { connect } from 'node:net';

const [port = '', connections = '', request = '', once] = process.argv.slice(2);
/** Bytes per write on a connection. */
const BURST_BYTES = 256 * 1024;
/** Delay before a closed connection is replaced. */
const PAUSE_MS = 5;

const one = Buffer.from(request, 'latin1');
const burst = Buffer.concat(
  Array.from({ length: once ? Number(once) : Math.ceil(BURST_BYTES / one.length) }, () => one),
);
let bytes = 0;

function flood(): void {
  const socket = connect(Number(port), '127.0.0.1');
  const write = (): void => {
    while (!socket.destroyed && socket.write(burst)) {
      bytes += burst.length;
      if (once) return;
    }
  };
  socket.on('connect', write);
  if (!once) socket.on('drain', write);
  socket.on('data', () => {});
  socket.on('error', () => {});
  socket.on('close', () => setTimeout(flood, PAUSE_MS));
}

for (let nth = 0; nth < Number(connections); nth += 1) flood();
process.on('message', () => process.send?.(bytes));
