/**
 * The user's app as a process of its own, to be killed like any other: serves the programs with the client library and
 * keeps the diary. `node app-process.ts <port> <diary>`, with the library's variables in the environment.
 */
import { createHash } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { serveMany } from '@upstash/workflow/nextjs';
import { type DeliveredEntry, openDiary } from './diary.ts';
import { invokables } from './programs.ts';

const [port = '0', diaryPath = ''] = process.argv.slice(2);
const diary = openDiary(diaryPath);
const programs = serveMany(invokables((runId) => diary.write({ kind: 'told of failure', runId })));
const senders = new Set<Socket>();
// The kernel closes a killed process's connections at once; the rest is for a busy machine.
const SENDERS_GONE_LIMIT_MS = 10_000;
/** About every tenth message is worked on twice. */
const REPEATED_OF_256 = 26;

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  if (request.url === '/senders-gone') return answerSendersGone(request, response);
  let body: Buffer;
  try {
    body = await buffer(request);
  } catch {
    return; // the sender was killed while it wrote; what did not arrive whole did not arrive
  }
  note(request, body);
  const handle = async () => (await programs.POST(requestOf(request, body))) as Response;
  // As if the network had delivered it twice: both go to work at once, and only one is answered.
  const dice = createHash('sha256').update(String(request.headers['upstash-message-id'])).digest()[0] ?? 0;
  const [answered] = await Promise.all([handle(), ...(dice < REPEATED_OF_256 ? [handle()] : [])]);
  response.writeHead(answered.status, Object.fromEntries(answered.headers)).end(await answered.text());
}

function requestOf({ url, headers, headersDistinct }: IncomingMessage, body: Buffer): Request {
  const pairs = Object.entries(headersDistinct).flatMap(([name, values = []]) =>
    values.map((value): [string, string] => [name, value]),
  );
  return new Request(`http://${headers.host}${url}`, { method: 'POST', headers: pairs, body: new Uint8Array(body) });
}

function note({ url = '', headers }: IncomingMessage, body: Buffer): void {
  const of = (name: string) => String(headers[`upstash-${name}`]);
  const isJournal = headers['upstash-workflow-sdk-version'] !== undefined;
  diary.write({
    kind: 'delivered',
    runId: of('workflow-runid'),
    createdAt: Number(of('workflow-createdat')),
    program: url.slice(url.lastIndexOf('/') + 1),
    messageId: of('message-id'),
    retried: Number(of('retried')),
    ...(isJournal && { journal: JSON.parse(body.toString()) as DeliveredEntry[] }),
  });
}

/** Answers once nothing that others sent is still to be read. */
async function answerSendersGone(request: IncomingMessage, response: ServerResponse): Promise<void> {
  senders.delete(request.socket);
  const limit = performance.now() + SENDERS_GONE_LIMIT_MS;
  do await sleep(10);
  while (senders.size > 0 && performance.now() < limit);
  response.writeHead(senders.size === 0 ? 200 : 500, { connection: 'close' }).end();
}

const server = createServer((request, response) => void answer(request, response));
server.on('connection', (socket: Socket) => {
  senders.add(socket);
  socket.once('close', () => senders.delete(socket));
});
server.listen(Number(port), '127.0.0.1', () => {
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  process.stdout.write(`${JSON.stringify({ event: 'listening', url })}\n`);
});
