/** Empties a cell while its projects are in use, with a command that is killed repeatedly. */
import { createServer, type Server } from 'node:http';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { testFolder } from '../support/folder.ts';
import { type InProcessServer, serveInProcess } from '../support/in-process-server.ts';
import { listen, originOf } from '../support/listen.ts';
import { freshDatabase } from '../support/postgres/shared.ts';
import { SeededRandom } from '../support/seeded-random.ts';
import { outputOf } from '../support/waypost-command.ts';
import { runWaypost, WaypostProcess } from '../support/waypost-process.ts';

const PROJECTS = ['one', 'a', 'b', 'c', 'd'];
const KILLS = 2;

let folder: string;
let env: Record<string, string>;
let receiver: Server;
let received: string[];
let server: InProcessServer;

beforeEach(async () => {
  folder = testFolder();
  received = [];
  receiver = createServer(async (request, response) => {
    received.push(Buffer.concat(await request.toArray()).toString());
    response.end();
  });
  await listen(receiver);
  env = {
    WAYPOST_DATABASE_URL: await freshDatabase(),
    WAYPOST_DATA_DIR: folder,
    WAYPOST_ALLOW_DESTINATIONS: '127.0.0.1',
  };
  const [first, ...others] = PROJECTS;
  await done('init', '--project', first ?? '');
  for (const name of others) await done('projects', 'create', name);
  await done('cells', 'add', 'second', '--schema', 'second');
  server = await serveInProcess(['serve'], env);
  await eventually('the second cell is open', () => server.events.some(({ event }) => event === 'cell_opened'));
});
afterEach(async () => {
  await server.stop();
  receiver.close();
});

const done = (...args: string[]): Promise<string> => outputOf(args, env);

/** Publishes to all projects round-robin until it is stopped. Resolves to the accepted bodies. */
function publishing(): () => Promise<string[]> {
  const accepted: string[] = [];
  let isGoingOn = true;
  const work = (async () => {
    const tokens: string[] = [];
    for (const project of PROJECTS)
      tokens.push(JSON.parse(await done('tokens', 'create', '--project', project, '--scope', 'full', '--json')).token);
    const url = `${server.url}/v2/publish/${originOf(receiver)}/`;
    for (let count = 0; isGoingOn; count += 1) {
      const token = tokens[count % tokens.length];
      const body = `message ${count}`;
      const { status } = await fetch(url, { method: 'POST', headers: { authorization: `Bearer ${token}` }, body });
      expect([200, 503]).toContain(status);
      if (status === 200) accepted.push(body);
    }
  })();
  return async () => {
    isGoingOn = false;
    await work;
    return accepted;
  };
}

it('repeating a killed command empties a draining cell, and every message arrives once', async () => {
  const random = new SeededRandom(4);
  const stop = publishing();
  await done('cells', 'drain', 'first');
  for (let kill = 0; kill < KILLS; kill += 1) {
    const balancing = new WaypostProcess(['cells', 'balance', '--yes'], env);
    await eventually('a project is being moved', () => balancing.stderr.includes(' -> '));
    const moved = balancing.stderr.length;
    if (random.chance(0.5)) await eventually('another step', () => balancing.stderr.length > moved);
    await balancing.kill();
  }
  const { code, stderr } = await runWaypost(['cells', 'balance', '--yes'], env);
  expect([code, stderr]).toEqual([0, expect.stringContaining('moved: ')]);
  const accepted = await stop();
  expect(accepted.length).toBeGreaterThan(PROJECTS.length);
  await eventually('all are received', () => new Set(received).size >= accepted.length);
  expect(received.toSorted()).toEqual([...new Set(received)].toSorted());
  expect(accepted.filter((body) => !received.includes(body))).toEqual([]);
  const cells = JSON.parse(await done('cells', '--json'));
  expect(cells).toMatchObject([
    { projects: 0, moves: [] },
    { projects: PROJECTS.length, moves: [] },
  ]);
  expect(await done('cells', 'balance')).toContain('No project needs to move.');
  expect(JSON.parse(await done('doctor', '--json')).isSound).toBe(true);
}, 120_000);
