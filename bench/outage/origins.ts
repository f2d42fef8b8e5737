/**
 * The endpoints of an outage: `node bench/outage/origins.ts <count>`. Each endpoint is its own origin: a loopback address
 * with a listener. `SLOW` responds after two seconds, `DOWN` refuses connections until the command `up`, the other
 * endpoints respond after 20 ms. A body starts with its message number in ten digits; message n goes to origin n modulo
 * the count. The endpoints run as a separate process, controlled by `origins-process.ts`.
 */
import { createServer, type Server, type Socket } from 'node:net';
import { RequestSplitter } from '../request-splitter.ts';
import { DOWN, type OriginsCommand, type OriginsEvent, SLOW } from './origins-process.ts';

const RESPONSE = Buffer.from('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n');
const RESPONSE_DELAY_MS = 20;
const SLOW_RESPONSE_DELAY_MS = 2_000;
/** Number of seconds for which the concurrent requests are recorded. */
const RISE_SECONDS = 60;

interface Origin {
  server: Server;
  host: string;
  port: number;
  concurrent: number;
  concurrentMax: number;
  /** Maximum number of concurrent requests before the first response of the origin. */
  unansweredMax: number;
  hasResponded: boolean;
}

const originsCount = Number(process.argv[2]);
const origins: Origin[] = [];
let arrivals = new BigUint64Array(0);
let pending = 0;
let pendingOfHealthy = 0;
let repeated = 0;
let slowSinceMs = Number.NaN;
const slowRise: number[] = [];

function arrived(socket: Socket, index: number, origin: Origin, messageNumber: number): void {
  if (arrivals[messageNumber] === 0n) {
    arrivals[messageNumber] = process.hrtime.bigint();
    pending -= 1;
    if (index !== SLOW && index !== DOWN) pendingOfHealthy -= 1;
    if (pendingOfHealthy === 0) send({ kind: 'drained' });
    if (pending === 0) send({ kind: 'complete' });
  } else repeated += 1;
  origin.concurrent += 1;
  origin.concurrentMax = Math.max(origin.concurrentMax, origin.concurrent);
  if (!origin.hasResponded) origin.unansweredMax = Math.max(origin.unansweredMax, origin.concurrent);
  if (index === SLOW) recordRise(origin.concurrent);
  setTimeout(respond, index === SLOW ? SLOW_RESPONSE_DELAY_MS : RESPONSE_DELAY_MS, socket, origin);
}

function respond(socket: Socket, origin: Origin): void {
  origin.concurrent -= 1;
  origin.hasResponded = true;
  socket.write(RESPONSE);
}

function recordRise(concurrent: number): void {
  if (Number.isNaN(slowSinceMs)) slowSinceMs = performance.now();
  const second = Math.floor((performance.now() - slowSinceMs) / 1_000);
  if (second < RISE_SECONDS) slowRise[second] = Math.max(slowRise[second] ?? 0, concurrent);
}

function openOrigin(index: number): Origin {
  const server = createServer((socket) => {
    socket.setNoDelay(true);
    const splitter = new RequestSplitter((buffer, bodyStart) => {
      arrived(socket, index, origin, Number(buffer.toString('latin1', bodyStart, bodyStart + 10)));
    });
    socket.on('data', (chunk: Buffer) => splitter.push(chunk));
    socket.on('error', () => socket.destroy()); // the server closed the connection: an interrupted attempt is repeated
  });
  const host = `127.1.${index >> 8}.${index & 255}`;
  const origin = { server, host, port: 0, concurrent: 0, concurrentMax: 0, unansweredMax: 0, hasResponded: false };
  return origin;
}

function listen(origin: Origin): Promise<void> {
  return new Promise((resolve, reject) => {
    origin.server.once('error', reject).listen(origin.port, origin.host, 1_024, () => {
      const address = origin.server.address();
      if (address !== null && typeof address === 'object') origin.port = address.port;
      resolve();
    });
  });
}

function send(event: OriginsEvent): void {
  process.send?.(event);
}

async function handle(command: OriginsCommand): Promise<void> {
  const down = origins[DOWN];
  switch (command.kind) {
    case 'expect':
      arrivals = new BigUint64Array(command.messages);
      pending = command.messages;
      pendingOfHealthy = pending - countOf(command.messages, SLOW) - countOf(command.messages, DOWN);
      return send({ kind: 'ready' });
    case 'up':
      if (down) await listen(down);
      return;
    case 'report':
      return send({
        kind: 'report',
        missing: pending,
        repeated,
        arrivalsNs: arrivals,
        concurrentMax: Math.max(...origins.map(({ concurrentMax }) => concurrentMax)),
        unansweredMax: Math.max(...origins.map(({ unansweredMax }) => unansweredMax)),
        slowRise,
      });
  }
}

/** The number of messages for the origin `index`. */
function countOf(messages: number, index: number): number {
  return Math.ceil((messages - index) / originsCount);
}

for (let index = 0; index < originsCount; index += 1) {
  const origin = openOrigin(index);
  origins.push(origin);
  await listen(origin);
}
await new Promise((resolve) => origins[DOWN]?.server.close(resolve)); // the port remains reserved and refuses connections
process.on('message', (command: OriginsCommand) => void handle(command));
process.once('disconnect', () => process.exit(0));
send({ kind: 'listening', urls: origins.map(({ host, port }) => `http://${host}:${port}/`) });
