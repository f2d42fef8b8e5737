/** The operator of several cells is notified of events in each cell, in whichever cell the project of the operator is. */
import { createServer, type Server } from 'node:http';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { testFolder } from '../support/folder.ts';
import { type InProcessServer, serveInProcess } from '../support/in-process-server.ts';
import { listen, originOf } from '../support/listen.ts';
import { freshDatabase } from '../support/postgres/shared.ts';
import { outputOf } from '../support/waypost-command.ts';

let folder: string;
let env: Record<string, string>;
let receiver: Server;
let reported: { kind: string; cell?: string; project: string | null; count: number }[];
let server: InProcessServer | undefined;

beforeEach(async () => {
  folder = testFolder();
  reported = [];
  receiver = createServer(async (request, response) => {
    const body = Buffer.concat(await request.toArray()).toString();
    if (request.url === '/operator') reported.push(JSON.parse(body));
    response.statusCode = request.url === '/operator' ? 200 : 500;
    response.end();
  });
  await listen(receiver);
  env = {
    ...{ WAYPOST_DATABASE_URL: await freshDatabase(), WAYPOST_DATA_DIR: folder },
    ...{ WAYPOST_ALLOW_DESTINATIONS: '127.0.0.1', WAYPOST_OPERATOR_EVENTS_URL: `${baseUrl()}/operator` },
  };
  await done('init', '--project', 'in-first');
  await done('cells', 'add', 'second', '--schema', 'second');
  await done('cells', 'drain', 'first');
  await done('projects', 'create', 'in-second');
});
afterEach(async () => {
  await server?.stop();
  server = undefined;
  receiver.close();
});

const baseUrl = (): string => originOf(receiver);

const done = (...args: string[]): Promise<string> => outputOf(args, env);

async function bury(project: string): Promise<void> {
  const { token } = JSON.parse(await done('tokens', 'create', '--project', project, '--scope', 'full', '--json'));
  const { status } = await fetch(`${server?.url}/v2/publish/${baseUrl()}/fails`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'upstash-retries': '0' },
    body: 'x',
  });
  expect(status).toBe(200);
}

async function serve(): Promise<void> {
  const started = await serveInProcess(['serve'], env);
  server = started;
  await eventually('the second cell is open', () => started.events.some(({ event }) => event === 'cell_opened'));
}

const isTold = (project: string): Promise<unknown> =>
  eventually(`an operator event for ${project}`, () => reported.some((event) => event.project === project));

it('an operator event names its cell, and is sent once, in whichever cell the project of the operator is', async () => {
  await serve();
  await bury('in-second');
  await isTold('in-second');
  await done('projects', 'move', 'operator', '--to', 'second');
  await bury('in-first');
  await isTold('in-first');
  expect(reported).toMatchObject([
    { kind: 'message_buried', cell: 'second', project: 'in-second', count: 1 },
    { kind: 'message_buried', cell: 'first', project: 'in-first', count: 1 },
  ]);
});
