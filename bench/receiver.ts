/**
 * The endpoint of the benchmarks: `node bench/receiver.ts ordinary|bare` (see `Peers`). Each body starts with the
 * message's number in ten digits; the receiver counts who arrived, how often, and when (CLOCK_MONOTONIC, which all
 * processes of a machine share). A process of its own, spoken to over its IPC channel: see `receiver-process.ts`.
 */
import { createServer as createHttpServer, type IncomingMessage, type ServerResponse } from 'node:http';

import type { AddressInfo } from 'node:net';
import { createServer, type Socket } from 'node:net';
import type { ReceiverCommand, ReceiverEvent } from './receiver-process.ts';
import { RequestSplitter } from './request-splitter.ts';

const OK = Buffer.from('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n');

let expected = 0;
let distinct = 0;
let repeated = 0;
let unexpected = 0;
let lastArrivalNs = 0n;
let arrivals = new BigUint64Array(0);

function arrived(messageNumber: number): void {
  if (!(messageNumber < expected)) {
    unexpected += 1;
    return;
  }
  if (arrivals[messageNumber] !== 0n) {
    repeated += 1;
    return;
  }
  lastArrivalNs = process.hrtime.bigint();
  arrivals[messageNumber] = lastArrivalNs;
  distinct += 1;
  if (distinct === expected) send({ kind: 'complete' });
}

function serveOrdinarily(request: IncomingMessage, response: ServerResponse): void {
  const chunks: Buffer[] = [];
  request.on('data', (chunk: Buffer) => chunks.push(chunk));
  request.on('end', () => {
    arrived(numberIn(Buffer.concat(chunks)));
    response.end();
  });
}

function numberIn(body: Buffer): number {
  return body.length >= 10 ? Number(body.toString('latin1', 0, 10)) : Number.NaN;
}

function serveBarely(socket: Socket): void {
  socket.setNoDelay(true);
  const splitter = new RequestSplitter((buffer, bodyStart, bodyEnd) => {
    arrived(numberIn(buffer.subarray(bodyStart, bodyEnd)));
    socket.write(OK);
  });
  socket.on('data', (chunk: Buffer) => splitter.push(chunk));
  socket.on('error', () => socket.destroy()); // a sender that was killed: the ledger's count tells
}

function send(event: ReceiverEvent): void {
  process.send?.(event);
}

process.on('message', (command: ReceiverCommand) => {
  switch (command.kind) {
    case 'expect':
      expected = command.messages;
      distinct = repeated = unexpected = 0;
      lastArrivalNs = 0n;
      arrivals = new BigUint64Array(expected);
      send({ kind: 'ready' });
      if (expected === 0) send({ kind: 'complete' });
      return;
    case 'report':
      send({ kind: 'report', distinct, repeated, unexpected, lastArrivalNs, arrivalsNs: arrivals });
  }
});
process.once('disconnect', () => process.exit(0));

const server = process.argv[2] === 'bare' ? createServer(serveBarely) : createHttpServer(serveOrdinarily);
server.listen(0, '127.0.0.1', 1024, () => {
  send({ kind: 'listening', port: (server.address() as AddressInfo).port });
});
