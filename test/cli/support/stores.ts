/** Data folders, servers on them and an endpoint, for tests of backups, restores and moves. Sets them up before each test. */
import { closeSync, existsSync, openSync, writeSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, expect } from 'vitest';
import { testFolder } from '../../support/folder.ts';
import { listen, originOf } from '../../support/listen.ts';
import { type CommandResult, giveCommand } from '../../support/waypost-command.ts';
import { type ProcessResult, WaypostProcess } from '../../support/waypost-process.ts';

let folder: string;
let receiver: Server;
/** Bodies that came, and the status that is answered. */
export const endpoint = { received: [] as string[], answer: 200 };
const servers: WaypostProcess[] = [];

beforeEach(async () => {
  folder = testFolder();
  endpoint.received = [];
  endpoint.answer = 200;
  receiver = createServer((request, response) => {
    let body = '';
    request.setEncoding('utf8').on('data', (text: string) => {
      body += text;
    });
    request.on('end', () => {
      endpoint.received.push(body);
      response.writeHead(endpoint.answer).end();
    });
  });
  await listen(receiver);
});
afterEach(async () => {
  for (const server of servers.splice(0)) await server.kill();
  receiver.closeAllConnections();
  await new Promise((resolve) => receiver.close(resolve));
});

export const folderOf = (name: string) => join(folder, name);
export const database = (name: string) => join(folder, name, 'waypost.db');
export const keyFile = (name: string) => join(folder, name, 'encryption.key');

/** Makes a data folder with a project; answers its token. */
export async function init(name: string): Promise<string> {
  const { code, stdout } = await giveCommand(['init', '--data-dir', folderOf(name)]);
  expect(code).toBe(0);
  return /^QSTASH_TOKEN=(.*)$/m.exec(stdout)?.[1] ?? '';
}

export async function serve(
  name: string,
  env: Record<string, string> = {},
): Promise<{ server: WaypostProcess; url: string }> {
  const args = ['serve', '--port', '0', '--data-dir', folderOf(name), '--log-format', 'json'];
  const server = new WaypostProcess(args, { WAYPOST_ALLOW_DESTINATIONS: '127.0.0.1/32', ...env });
  servers.push(server);
  return { server, url: await server.url() };
}

export async function stop(server: WaypostProcess): Promise<void> {
  server.signal('SIGTERM');
  expect((await server.waitForExit()).code).toBe(0);
}

export async function publish(
  url: string,
  token: string,
  body: string,
  headers: Record<string, string> = {},
): Promise<void> {
  const response = await fetch(`${url}/v2/publish/${originOf(receiver)}/`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, ...headers },
    body,
  });
  expect(response.status).toBe(200);
}

export async function succeeded<T extends CommandResult | ProcessResult>(running: Promise<T>): Promise<T> {
  const ended = await running;
  expect(ended).toMatchObject({ code: 0 });
  return ended;
}

export async function isSound(name: string, env: Record<string, string> = {}): Promise<void> {
  await succeeded(giveCommand(['doctor', '--data-dir', folderOf(name)], env));
}

/** Bodies of all messages that a stopped store has, sorted. */
export function bodiesIn(name: string): string[] {
  const opened = new DatabaseSync(database(name), { readOnly: true });
  const rows = opened.prepare('select c.body from messages m join contents c on c.key = m.key').all();
  opened.close();
  return rows.map(({ body }) => Buffer.from(body as Uint8Array).toString('utf8')).toSorted();
}

/** Rows of a table of a database that another process may be about to make. */
export function countIn(path: string, table: string): number {
  if (!existsSync(path)) return 0;
  const opened = new DatabaseSync(path, { readOnly: true, timeout: 5_000 });
  try {
    const found = opened.prepare('select 1 from sqlite_schema where name = ?').get(table);
    return found === undefined ? 0 : Number(opened.prepare(`select count(*) as count from ${table}`).get()?.['count']);
  } finally {
    opened.close();
  }
}

/** Destroys a page, as a failing disk would. */
export function scribble(path: string, offset: number): void {
  const file = openSync(path, 'r+');
  writeSync(file, Buffer.alloc(4096, 0xaa), 0, 4096, offset);
  closeSync(file);
}
