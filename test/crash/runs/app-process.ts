/**
 * The user's app in its own process, which can be killed, too. It serves the programs with the workflow libraries, and writes
 * the diary. `node app-process.ts <port> <diary> official|own|both [token...]`, with the variables of the libraries in the
 * environment. Paths below `/1` belong to the project of the first token, and so on; other paths belong to the project of
 * `QSTASH_TOKEN`.
 */
import { createHash } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client } from '@upstash/qstash';
import { CallNotes } from './call-notes.ts';
import { type DeliveredEntry, openDiary } from './diary.ts';
import { LIBRARIES, type LibraryName, libraryChoice } from './libraries.ts';
import { invokables } from './programs.ts';

const [port = '0', diaryPath = '', chosen = 'official', ...tokens] = process.argv.slice(2);
const choice = libraryChoice(chosen);
const diary = openDiary(diaryPath);
const notes = new CallNotes(diary);
const programs = [undefined, ...tokens].map((token) => ({
  official: serve('official', token),
  own: serve('own', token),
}));
const senders = new Set<Socket>();
/**
 * The number of requests that are not in the diary yet. On a busy machine a request may be read after the exit of its
 * sender is noticed.
 */
let reading = 0;
// The kernel closes a killed process's connections at once; the rest of this time is for a busy machine.
const SENDERS_GONE_LIMIT_MS = 10_000;
/** About every tenth attempt is handled twice. */
const REPEATED_OF_256 = 26;

function serve(name: LibraryName, token: string | undefined) {
  const library = LIBRARIES[name];
  const workflows = invokables(library, {
    onFailure: (runId) => diary.write({ kind: 'told of failure', runId }),
    onExecution: (step) => notes.executed(step),
  });
  if (token === undefined) return library.serveMany(workflows);
  return library.serveMany(workflows, {
    qstashClient: new Client({ baseUrl: process.env['QSTASH_URL'] ?? '', token }),
  });
}

function programsAt(url: string) {
  const project = Number(/^\/(\d+)\//.exec(url)?.[1] ?? 0);
  const found = programs[project];
  if (!found) throw new Error(`no token is of project ${project}`);
  return found;
}

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  if (request.url === '/senders-gone') return answerSendersGone(request, response);
  const [ofFirst, ofSecond, isRepeated] = diceOf(request);
  const library = libraryBy(ofFirst);
  reading += 1;
  const body = await buffer(request).catch(() => undefined);
  const call = body && note(request, body, library);
  reading -= 1;
  // The sender was killed while it wrote. An incomplete request does not count.
  if (!call) return;
  const served = programsAt(request.url ?? '');
  const handle = (name: LibraryName, hand: number) =>
    notes.during(call, hand, async () => (await served[name].POST(requestOf(request, body))) as Response);
  // As if the network had delivered the request twice: both copies are handled at once, and only one has a response.
  const [answered] = await Promise.all([handle(library, 0), ...(isRepeated ? [handle(libraryBy(ofSecond), 1)] : [])]);
  response.writeHead(answered.status, Object.fromEntries(answered.headers)).end(await answered.text());
}

/** The choice is the same for the same attempt, also in the next process. */
function diceOf({ headers }: IncomingMessage): [number, number, boolean] {
  const attempt = `${headers['upstash-message-id']} ${headers['upstash-retried']}`;
  const [first = 0, second = 0, third = 0] = createHash('sha256').update(attempt).digest();
  return [first, second, third < REPEATED_OF_256];
}

function libraryBy(dice: number): LibraryName {
  if (choice !== 'both') return choice;
  return dice % 2 === 0 ? 'own' : 'official';
}

function requestOf({ url, headers, headersDistinct }: IncomingMessage, body: Buffer): Request {
  const pairs = Object.entries(headersDistinct).flatMap(([name, values = []]) =>
    values.map((value): [string, string] => [name, value]),
  );
  return new Request(`http://${headers.host}${url}`, { method: 'POST', headers: pairs, body: new Uint8Array(body) });
}

function note({ url = '', headers }: IncomingMessage, body: Buffer, library: LibraryName) {
  const of = (name: string) => String(headers[`upstash-${name}`]);
  const isJournal = headers['upstash-workflow-sdk-version'] !== undefined;
  return notes.arrived({
    runId: of('workflow-runid'),
    createdAt: Number(of('workflow-createdat')),
    program: url.slice(url.lastIndexOf('/') + 1),
    messageId: of('message-id'),
    retried: Number(of('retried')),
    library,
    ...(isJournal && { journal: JSON.parse(body.toString()) as DeliveredEntry[] }),
  });
}

/** Responds once all requests of other senders have been read. */
async function answerSendersGone(request: IncomingMessage, response: ServerResponse): Promise<void> {
  senders.delete(request.socket);
  const limit = performance.now() + SENDERS_GONE_LIMIT_MS;
  do await sleep(10);
  while (senders.size + reading > 0 && performance.now() < limit);
  response.writeHead(senders.size + reading === 0 ? 200 : 500, { connection: 'close' }).end();
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
