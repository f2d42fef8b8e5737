/**
 * Follows docs/scaling.md on one PostgreSQL: runs its four commands, after which half of the projects are on a second server.
 * All projects are in use meanwhile, and nothing is lost.
 */
import { readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { testFolder } from '../support/folder.ts';
import { type InProcessServer, serveInProcess } from '../support/in-process-server.ts';
import { listen, originOf } from '../support/listen.ts';
import { freshDatabase } from '../support/postgres/shared.ts';
import { giveCommand } from '../support/waypost-command.ts';

const PAGE = readFileSync(join(import.meta.dirname, '../../docs/scaling.md'), 'utf8');
const PROJECTS = ['one', 'two', 'three', 'four'];
const FEW = 4;
const tokens = new Map<string, string>();

let folder: string;
let env: Record<string, string>;
let worker: InProcessServer;
let receiver: Server;
const received: string[] = [];

beforeEach(async () => {
  folder = testFolder();
  env = {
    WAYPOST_DATABASE_URL: await freshDatabase(),
    WAYPOST_DATA_DIR: folder,
    WAYPOST_ALLOW_DESTINATIONS: '127.0.0.1',
  };
  receiver = createServer(async (request, response) => {
    received.push(Buffer.concat(await request.toArray()).toString());
    response.end();
  });
  await listen(receiver);
  const [first = '', ...others] = PROJECTS;
  await give('init', '--project', first);
  for (const name of others) await give('projects', 'create', name);
  for (const project of PROJECTS) {
    const made = await give('tokens', 'create', '--project', project, '--scope', 'full', '--json');
    tokens.set(project, (JSON.parse(made) as { token: string }).token);
  }
  worker = await serveInProcess(['serve'], env);
});

afterEach(async () => {
  await worker.stop();
  receiver.close();
});

async function give(...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await giveCommand(args, env);
  expect([args.join(' '), code, code === 0 ? '' : stderr]).toEqual([args.join(' '), 0, '']);
  return stdout;
}

/** The words of each command in the first example below the heading, without what is said of it. */
function commandsBelow(heading: string): string[][] {
  const [, code = ''] = /^```sh\n(.*?)^```$/ms.exec(PAGE.slice(PAGE.indexOf(`\n## ${heading}\n`))) ?? [];
  const lines = code.split('\n').filter((line) => line.startsWith('waypost '));
  return lines.map((line) => line.replace(/#.*/, '').trim().split(/\s+/).slice(1));
}

/** Publishes messages, a few of which have not arrived at any time, until `signal` says so; answers those that were accepted. */
async function use(project: string, signal: AbortSignal): Promise<string[]> {
  const accepted: string[] = [];
  for (let count = 0; !signal.aborted || accepted.length < 20; count += 1) {
    const body = `${project} ${count}`;
    const { status, headers } = await fetch(`${worker.url}/v2/publish/${originOf(receiver)}/`, {
      method: 'POST',
      headers: { authorization: `Bearer ${tokens.get(project)}` },
      body,
    });
    if (status === 200) {
      accepted.push(body);
      await eventually('it is received', () => accepted.length < FEW || received.includes(accepted.at(-FEW) ?? ''));
    } else expect([status, headers.has('retry-after')]).toEqual([503, true]);
  }
  return accepted;
}

it('four commands of the page bring half of the projects to a second PostgreSQL, and lose nothing', async () => {
  const commands = commandsBelow('Cells');
  expect(commands).toHaveLength(4);
  const second = await freshDatabase();
  const done = new AbortController();
  const used = PROJECTS.map((project) => use(project, done.signal));
  await eventually('all projects are in use', () => PROJECTS.every((name) => received.includes(`${name} 9`)));
  for (const words of commands) await give(...words.map((word) => (word.startsWith('postgres://') ? second : word)));
  const cells = JSON.parse(await give('cells', '--json')) as { projects: number }[];
  expect(cells.map(({ projects }) => projects)).toEqual([2, 2]);
  done.abort();
  const accepted = (await Promise.all(used)).flat();
  await eventually('everything is received', () => accepted.every((body) => received.includes(body)));
  expect(received.toSorted()).toEqual([...new Set(received)].toSorted());
  expect(JSON.parse(await give('doctor', '--json'))).toMatchObject({ isSound: true });
});
