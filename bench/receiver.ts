/**
 * The endpoint of the benchmarks: `node bench/receiver.ts ordinary|bare` (see `Peers`). Each body starts with the
 * message's number in ten digits, whose arrival is recorded. The endpoint runs as a separate process with an IPC
 * channel; see `receiver-process.ts`.
 */
import { createServer as createHttpServer, type IncomingMessage, type ServerResponse } from 'node:http';

import type { AddressInfo } from 'node:net';
import { createServer, type Socket } from 'node:net';
import { arrived, serveLedger } from './arrival-ledger.ts';
import { RequestSplitter } from './request-splitter.ts';

const OK = Buffer.from('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n');

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
  socket.on('error', () => socket.destroy()); // the sender was killed: the number of arrivals shows the loss
}

const server = process.argv[2] === 'bare' ? createServer(serveBarely) : createHttpServer(serveOrdinarily);
server.listen(0, '127.0.0.1', 1024, () => {
  serveLedger({ kind: 'listening', port: (server.address() as AddressInfo).port });
});
