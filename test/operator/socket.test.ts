/** The protocol of the operator's socket, and its responses to invalid input. */

import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { chmodSync, existsSync, mkdirSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { NoServerListening, RemoteAdministration } from '../../src/admin/socket/client.ts';
import { listenForOperator, type OperatorSocket } from '../../src/admin/socket/server.ts';
import { socketPathOf, unusablePath } from '../../src/admin/socket/socket-path.ts';
import { StoredAdministration } from '../../src/admin/socket/stored-administration.ts';
import type { EventLog } from '../../src/engine/ports.ts';
import { openInlineSqliteStore } from '../../src/store/drivers/sqlite/open.ts';
import type { Store } from '../../src/store/store.ts';
import { testFolder } from '../support/folder.ts';
import { SILENT } from '../support/silent-log.ts';
import { SimulatedClock } from '../support/simulated-clock.ts';

let folder: string;
let path: string;
let store: Store;
let administration: StoredAdministration;
let socket: OperatorSocket;
let remote: RemoteAdministration;
let logged: string[];

beforeEach(async () => {
  folder = testFolder();
  path = socketPathOf(join(folder, 'waypost.db'));
  store = await openInlineSqliteStore({
    path: ':memory:',
    onFatal: (error) => {
      throw error;
    },
  });
  administration = new StoredAdministration({
    store,
    clock: new SimulatedClock(),
    randomness: { bytes: randomBytes },
    sealer: () => ({ encryptionKey: Buffer.alloc(32), randomBytes }),
  });
  logged = [];
  const note: EventLog['info'] = (event, fields) => logged.push(`${event} ${JSON.stringify(fields)}`);
  socket = await listenForOperator(path, administration, { debug: note, info: note, warn: note, error: note });
  remote = new RemoteAdministration(path);
});
afterEach(async () => {
  await socket.close();
  await store.close();
});

/** Sends raw bytes, and resolves to the response. */
function say(text: string): Promise<string> {
  return new Promise((resolve, reject) => {
    let answer = '';
    const client = connect(path, () => client.write(text));
    client.on('data', (chunk) => {
      answer += chunk.toString();
    });
    client.once('error', reject);
    client.once('close', () => resolve(answer));
  });
}

it('carries commands, their results and their errors', async () => {
  await remote.createProject({ name: 'shop' });
  const { token, ...entry } = await remote.createToken({ project: 'shop', scope: 'read-only' });
  expect(await remote.listTokens({ project: 'shop' })).toEqual([entry]);
  await expect(remote.listTokens({ project: 'none' })).rejects.toThrow('there is no project "none"');
  expect(await remote.revokeToken({ id: entry.id })).toEqual(entry);
  expect(logged.join()).not.toContain(token);
  expect(logged).toHaveLength(4);
});

it('creates one project for two concurrent requests with the same name', async () => {
  const outcomes = await Promise.allSettled([1, 2, 3].map(() => remote.createProject({ name: 'shop' })));
  expect(outcomes.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected', 'rejected']);
});

it.each([
  ['invalid JSON', 'hello\n'],
  ['an array', '[]\n'],
  ['an unknown command', '{"command":"dropEverything","request":{}}\n'],
  ['a command named like a member of every object', '{"command":"constructor","request":{}}\n'],
  ['a request of another shape', '{"command":"revokeToken","request":{"id":7}}\n'],
  ['a line without a line feed', 'x'.repeat(100_000)],
])('rejects %s and continues to serve', async (_what, text) => {
  expect(JSON.parse(await say(text))).toHaveProperty('refused');
  expect(await remote.listProjects()).toEqual([]);
});

it('responds while a thousand clients are connected without sending, and closes the oldest connection above that', async () => {
  const silent: Socket[] = [];
  for (let round = 0; round < 12; round += 1) {
    const more = Array.from({ length: 100 }, () => connect(path).on('error', () => {}));
    await Promise.all(more.map((client) => once(client, 'connect')));
    silent.push(...more);
    expect(await remote.listProjects()).toEqual([]);
  }
  const [oldest, ...others] = silent;
  if (oldest && !oldest.closed) await once(oldest, 'close');
  expect(others.at(-1)?.closed).toBe(false);
  for (const client of silent) client.destroy();
});

it('reports the cause of an internal error only in its log', async () => {
  store.projects.listProjects = () => Promise.reject(new Error('the secret reason'));
  await expect(remote.listProjects()).rejects.toThrow('the server could not do it; its log says why');
  expect(logged.join()).toContain('the secret reason');
  expect(await remote.listTokens({}).catch((error: Error) => error.message)).toContain('its log says why');
});

it('is removed when it is closed, and clients report that', async () => {
  await socket.close();
  await expect(remote.listProjects()).rejects.toThrow(NoServerListening);
});

it('is not opened in a folder that is a symbolic link, and does not change the target of the link', async () => {
  const elsewhere = join(folder, 'elsewhere');
  mkdirSync(elsewhere);
  chmodSync(elsewhere, 0o755);
  writeFileSync(join(elsewhere, 'socket'), 'not ours');
  const linked = socketPathOf(join(folder, 'other.db'));
  symlinkSync(elsewhere, dirname(linked));
  await expect(listenForOperator(linked, administration, SILENT)).rejects.toThrow('is not a folder of this user');
  expect(statSync(elsewhere).mode & 0o777).toBe(0o755);
  expect(existsSync(join(elsewhere, 'socket'))).toBe(true);
});

it('is not opened if its path would be truncated', async () => {
  const long = join(folder, 'x'.repeat(120), 'socket');
  expect(unusablePath(long)).toContain('longer than 103 bytes');
  await expect(new RemoteAdministration(long).listProjects()).rejects.toThrow(NoServerListening);
});
