/**
 * The endpoints of an outage: `node bench/outage/origins.ts <how many>`. Each is an origin of its own: a loopback address
 * with a listener. `SLOW` answers after two seconds, `DOWN` refuses connections until it is told otherwise, the others
 * answer after 20 ms. A body begins with the number of its message in ten digits; message n is for origin n modulo
 * their count. A process of its own: `origins-process.ts` has the other side.
 */
import { createServer, type Server, type Socket } from 'node:net';
import { RequestSplitter } from '../request-splitter.ts';
import { DOWN, type OriginsCommand, type OriginsEvent, SLOW } from './origins-process.ts';

const ANSWER = Buffer.from('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n');
const ANSWER_AFTER_MS = 20;
const SLOW_ANSWER_AFTER_MS = 2_000;
/** For how many seconds it is noted how many requests are under way. */
const RISE_SECONDS = 60;

interface Origin {
  server: Server;
  host: string;
  port: number;
  underWay: number;
  underWayMax: number;
  /** Until the first answer: how many came at once. */
  unansweredMax: number;
  hasAnswered: boolean;
}

const originsCount = Number(process.argv[2]);
const origins: Origin[] = [];
let arrivals = new BigUint64Array(0);
let left = 0;
let leftOfHealthy = 0;
let repeated = 0;
let slowSinceMs = Number.NaN;
const slowRise: number[] = [];

function arrived(socket: Socket, index: number, origin: Origin, messageNumber: number): void {
  if (arrivals[messageNumber] === 0n) {
    arrivals[messageNumber] = process.hrtime.bigint();
    left -= 1;
    if (index !== SLOW && index !== DOWN) leftOfHealthy -= 1;
    if (leftOfHealthy === 0) send({ kind: 'drained' });
    if (left === 0) send({ kind: 'complete' });
  } else repeated += 1;
  origin.underWay += 1;
  origin.underWayMax = Math.max(origin.underWayMax, origin.underWay);
  if (!origin.hasAnswered) origin.unansweredMax = Math.max(origin.unansweredMax, origin.underWay);
  if (index === SLOW) noteRise(origin.underWay);
  setTimeout(answer, index === SLOW ? SLOW_ANSWER_AFTER_MS : ANSWER_AFTER_MS, socket, origin);
}

function answer(socket: Socket, origin: Origin): void {
  origin.underWay -= 1;
  origin.hasAnswered = true;
  socket.write(ANSWER);
}

function noteRise(underWay: number): void {
  if (Number.isNaN(slowSinceMs)) slowSinceMs = performance.now();
  const second = Math.floor((performance.now() - slowSinceMs) / 1_000);
  if (second < RISE_SECONDS) slowRise[second] = Math.max(slowRise[second] ?? 0, underWay);
}

function openOrigin(index: number): Origin {
  const server = createServer((socket) => {
    socket.setNoDelay(true);
    const splitter = new RequestSplitter((buffer, bodyStart) => {
      arrived(socket, index, origin, Number(buffer.toString('latin1', bodyStart, bodyStart + 10)));
    });
    socket.on('data', (chunk: Buffer) => splitter.push(chunk));
    socket.on('error', () => socket.destroy()); // the server hung up: an attempt that was ended comes again
  });
  const host = `127.1.${index >> 8}.${index & 255}`;
  const origin = { server, host, port: 0, underWay: 0, underWayMax: 0, unansweredMax: 0, hasAnswered: false };
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

async function obey(command: OriginsCommand): Promise<void> {
  const down = origins[DOWN];
  switch (command.kind) {
    case 'expect':
      arrivals = new BigUint64Array(command.messages);
      left = command.messages;
      leftOfHealthy = left - countOf(command.messages, SLOW) - countOf(command.messages, DOWN);
      return send({ kind: 'ready' });
    case 'up':
      if (down) await listen(down);
      return;
    case 'report':
      return send({
        kind: 'report',
        missing: left,
        repeated,
        arrivalsNs: arrivals,
        underWayMax: Math.max(...origins.map(({ underWayMax }) => underWayMax)),
        unansweredMax: Math.max(...origins.map(({ unansweredMax }) => unansweredMax)),
        slowRise,
      });
  }
}

/** How many of the messages are for the origin `index`. */
function countOf(messages: number, index: number): number {
  return Math.ceil((messages - index) / originsCount);
}

for (let index = 0; index < originsCount; index += 1) {
  const origin = openOrigin(index);
  origins.push(origin);
  await listen(origin);
}
await new Promise((resolve) => origins[DOWN]?.server.close(resolve)); // its port stays its own, and refuses
process.on('message', (command: OriginsCommand) => void obey(command));
process.once('disconnect', () => process.exit(0));
send({ kind: 'listening', urls: origins.map(({ host, port }) => `http://${host}:${port}/`) });
