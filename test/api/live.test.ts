/** The live stream of a project's log, read over a separate connection in simulated time. */
import { once } from 'node:events';
import { afterEach, beforeEach, expect, it } from 'vitest';
import type { Accounts, Caller } from '../../src/api/accounts.ts';
import { LiveStream, UNREAD_BYTES_MAX } from '../../src/api/project/live.ts';
import type { LogWatcher } from '../../src/engine/live/feed.ts';
import { StoreUnavailable } from '../../src/engine/store-errors.ts';
import { hashToken } from '../../src/protocol/token.ts';
import { endOfTurn } from '../../src/system/system.ts';
import { SimulatedClock } from '../support/simulated-clock.ts';
import { RawConnection } from './support/raw-http.ts';
import {
  type Json,
  OTHER_TOKEN,
  openWorld,
  PUBLISH_ONLY_TOKEN,
  READ_ONLY_TOKEN,
  TOKEN,
  type World,
} from './support/world.ts';

const HEARTBEAT_MS = 15_000;

interface Event {
  event: string;
  id: string | undefined;
  data: Json;
}

let clock: SimulatedClock;
let world: World;
let port: number;
let connections: RawConnection[];

async function open(...changes: Parameters<typeof openWorld>): Promise<void> {
  clock = new SimulatedClock();
  world = await openWorld({ clock, ...changes[0] }, { clock, ...changes[1] });
  ({ port } = await world.listen());
}

beforeEach(async () => {
  connections = [];
  await open();
});
afterEach(async () => {
  for (const connection of connections) connection.destroy();
  await world.close();
});

/** A stream that has its head, not yet `open`. */
async function connect(token = TOKEN): Promise<RawConnection> {
  const connection = new RawConnection(port);
  connections.push(connection);
  connection.send(`GET /v2/waypost/live HTTP/1.1\r\nHost: waypost\r\nAuthorization: Bearer ${token}\r\n\r\n`);
  await connection.until((received) => received.includes('\r\n\r\n'));
  return connection;
}

/** A stream that has begun. */
async function watch(token = TOKEN): Promise<RawConnection> {
  const connection = await connect(token);
  await clock.advanceBy(500);
  await until(connection, 'open');
  return connection;
}

function eventsOf({ received }: RawConnection): Event[] {
  const text = received.replace(/\r\n[0-9a-f]+\r\n/g, '').replaceAll('\r\n', '');
  return [...text.matchAll(/event: (\w+)\n(?:id: (\S+)\n)?data: (.*)\n\n/g)].map(([, event = '', id, data = '']) => ({
    event,
    id,
    data: JSON.parse(data),
  }));
}

function until(connection: RawConnection, name: string, count = 1): Promise<string> {
  return connection.until(() => eventsOf(connection).filter(({ event }) => event === name).length >= count);
}

const dataOf = (connection: RawConnection, name: string): Json[] =>
  eventsOf(connection).flatMap(({ event, data }) => (event === name ? [data] : []));

it('says that it is a stream, that nobody may keep it, and that its connection ends with it', async () => {
  const { received } = await connect();
  expect(received).toMatch(/^HTTP\/1\.1 200 /);
  for (const line of ['content-type: text/event-stream', 'cache-control: no-store', 'connection: close'])
    expect(received.toLowerCase()).toContain(`\r\n${line}\r\n`);
});

it('shows each entry once it is written, as the log has it, to whoever may read', async () => {
  await world.publish('https://slow.example/before', { 'upstash-delay': '1h' });
  const [full, reader] = [await watch(), await watch(READ_ONLY_TOKEN)];
  const headers = { 'upstash-label': 'a,b', 'upstash-flow-control-key': 'k', 'upstash-flow-control-value': 'rate=9' };
  const messageId = await world.publish('https://fail.example/x?y=1', { ...headers, 'upstash-retries': '0' }, 'body');
  await clock.advanceBy(1_000);
  await until(full, 'entry', 4);
  const { json } = await world.ask({ method: 'GET', url: `/v2/logs?messageId=${messageId}&order=earliestFirst` });
  const members = [
    'messageId',
    'state',
    'time',
    'url',
    'method',
    'label',
    'labels',
    'flowControlKey',
    'error',
    'responseStatus',
  ];
  const shown = eventsOf(full).filter(({ event }) => event === 'entry');
  expect(shown.map(({ id, data }) => ({ ...data, id }))).toEqual(
    json.logs.map((entry: Json) => ({
      id: expect.stringMatching(/^\d+-\d+$/),
      ...Object.fromEntries(members.flatMap((name) => (name in entry ? [[name, entry[name]]] : []))),
    })),
  );
  expect(shown.map(({ data }) => data.id)).toEqual(shown.map(({ id }) => id));
  await until(reader, 'entry', 4);
  expect(dataOf(reader, 'entry')).toEqual(dataOf(full, 'entry'));
});

it('gives each event a cursor, after which the log goes on with what came later', async () => {
  await world.publish('https://slow.example/1', { 'upstash-delay': '1h' });
  const connection = await watch();
  await world.publish('https://slow.example/2', { 'upstash-delay': '1h' });
  await clock.advanceBy(1_000);
  await until(connection, 'entry');
  const after = async (id: string | undefined): Promise<string[]> => {
    const { json } = await world.ask({ method: 'GET', url: `/v2/logs?order=earliestFirst&cursor=${id}` });
    return json.logs.map(({ url }: Json) => url);
  };
  const [opened, entry] = eventsOf(connection);
  expect(await after(opened?.id)).toEqual(['https://slow.example/2']);
  expect(await after(entry?.id)).toEqual([]);
});

it('lists what a client has missed, page by page, as the stream would have told it', async () => {
  const connection = await watch();
  await world.publish('https://slow.example/1', { 'upstash-delay': '1h' });
  await world.publish('https://fail.example/2', { 'upstash-retries': '0' });
  const others = { authorization: `Bearer ${OTHER_TOKEN}`, 'upstash-delay': '1h' };
  await world.ask({ method: 'POST', url: '/v2/publish/https://slow.example/3', headers: others });
  await clock.advanceBy(1_000);
  await until(connection, 'entry', 5);
  const told = dataOf(connection, 'entry');
  const [opened] = eventsOf(connection);
  const after = (query: string) => world.ask({ method: 'GET', url: `/v2/waypost/live/entries?${query}` });
  const first = await after(`cursor=${opened?.id ?? '0-0'}&count=2`);
  const rest = await after(`cursor=${first.json.entries.at(-1).id}`);
  expect([...first.json.entries, ...rest.json.entries]).toEqual(told);
  expect((await after(`cursor=${told.at(-1)?.id}`)).json).toEqual({ entries: [] });
  expect((await after('')).json.entries.slice(-told.length)).toEqual(told);
  expect((await after('cursor=soon')).json.error).toContain('cursor');
});

it('shows no project what happens in another', async () => {
  const [ours, theirs] = [await watch(), await watch(OTHER_TOKEN)];
  await world.publish('https://slow.example/', { 'upstash-delay': '1h' });
  await clock.advanceBy(1_000);
  await until(ours, 'entry');
  await clock.advanceBy(HEARTBEAT_MS);
  await theirs.until((received) => received.includes('\n\r\n:\n\n') || received.includes('3\r\n:\n\n'));
  expect(eventsOf(theirs).map(({ event }) => event)).toEqual(['open']);
});

it('is not for tokens that may only publish', async () => {
  const { received } = await connect(PUBLISH_ONLY_TOKEN);
  expect(received).toMatch(/^HTTP\/1\.1 403 /);
});

it('is refused to a project that has sixteen, until one of them is closed', async () => {
  const open = await Promise.all(Array.from({ length: 16 }, () => connect()));
  const refused = await connect();
  expect(refused.received).toMatch(/^HTTP\/1\.1 429 .*16 live streams of this project are open/s);
  expect((await connect(OTHER_TOKEN)).received).toMatch(/^HTTP\/1\.1 200 /);
  open[0]?.destroy();
  for (let status = 429; status !== 200; ) {
    const again = await connect();
    status = Number(again.received.slice(9, 12));
    again.destroy();
  }
});

it('says something every quarter of a minute, so that nobody takes it for dead', async () => {
  const connection = await watch();
  const comments = (): number => connection.received.match(/:\n\n/g)?.length ?? 0;
  const before = comments();
  await clock.advanceBy(4 * HEARTBEAT_MS);
  await connection.until(() => comments() >= before + 4);
  expect(comments()).toBe(before + 4);
});

it('ends when the server does, which does not wait for its client', async () => {
  const connection = await watch();
  const closed = world.app.close();
  await connection.closed;
  await closed;
  expect(dataOf(connection, 'end')).toEqual([{ reason: 'draining' }]);
});

it('says nothing after its end, whatever is still told of', () => {
  const written: string[] = [];
  const sink = { writableLength: 0, write: (text: unknown) => written.push(String(text)), on: () => {}, end: () => {} };
  const stream = new LiveStream(sink);
  stream.end('draining');
  const before = written.length;
  stream.start(undefined);
  stream.publish([
    { timeMs: 1, n: 1, state: 'CREATED', messageId: 'msg_x', url: 'https://a.example/', method: 'POST' },
  ]);
  stream.skip(1);
  stream.sendHeartbeat();
  stream.end('unavailable');
  expect(written.slice(before)).toEqual([]);
  expect(written.at(-1)).toContain('event: end');
});

it('costs nothing once its client has gone', async () => {
  const gone: Promise<unknown>[] = [];
  world.app.server.on('request', (_, response) => gone.push(once(response, 'close')));
  await clock.advanceBy(0);
  const timers = clock.nextTimerAtMs;
  const connection = await watch();
  expect(clock.nextTimerAtMs).not.toBe(timers);
  connection.destroy();
  await Promise.all(gone);
  expect(clock.nextTimerAtMs).toBe(timers);
});

it('ends within a heartbeat of the revocation of its token, or when nobody can tell', async () => {
  await world.close();
  const callers = new Map<string, Caller>(
    ['kept', 'revoked'].map((token) => [hashToken(token), { projectId: 1, scope: 'full' }]),
  );
  let refresh = (): Promise<void> => Promise.resolve();
  const accounts: Accounts = {
    authenticate: (hash) => callers.get(hash),
    refresh: () => refresh(),
    projectByName: () => 1,
    projectName: () => 'first',
    signingKeys: () => Promise.resolve({ current: '', next: '' }),
    cachedSigningKeys: () => [],
    rotate: () => Promise.resolve({ current: '', next: '' }),
  };
  await open({ accounts });
  const [kept, revoked] = [await watch('kept'), await watch('revoked')];
  callers.delete(hashToken('revoked'));
  await clock.advanceBy(HEARTBEAT_MS);
  await revoked.closed;
  expect(dataOf(revoked, 'end')).toEqual([{ reason: 'unauthenticated' }]);
  refresh = () => Promise.reject(new StoreUnavailable('away'));
  await clock.advanceBy(HEARTBEAT_MS);
  await kept.closed;
  expect(dataOf(kept, 'end')).toEqual([{ reason: 'unavailable' }]);
});

it('ends when the log is not read here any more, so that its client opens another', async () => {
  let watcher: LogWatcher | undefined;
  world.engine.watchLog = (_, given) => {
    watcher = given;
    return () => {};
  };
  const connection = await connect();
  watcher?.close();
  await connection.closed;
  expect(dataOf(connection, 'end')).toEqual([{ reason: 'unavailable' }]);
});

it('leaves out what a slow client does not take, keeps little of it, and says how much it was', async () => {
  let watcher: LogWatcher | undefined;
  world.engine.watchLog = (_, given) => {
    watcher = given;
    given.start(undefined);
    return () => {};
  };
  const responses: { writableLength: number }[] = [];
  world.app.server.on('request', (_, response) => responses.push(response));
  const connection = await connect();
  connection.socket.pause();
  const url = `https://a.example/${'x'.repeat(10_000)}`;
  let told = 0;
  const tell = (): void => {
    const entries = Array.from({ length: 10 }, () => ({
      ...{ timeMs: 1, n: ++told, state: 'CREATED' as const, messageId: 'msg_x' as const, url, method: 'POST' as const },
    }));
    watcher?.publish(entries);
  };
  // The system has buffers of some megabytes of its own.
  while ((responses[0]?.writableLength ?? 0) < UNREAD_BYTES_MAX) {
    tell();
    await endOfTurn();
  }
  for (let round = 0; round < 100; round += 1) tell();
  expect(responses[0]?.writableLength).toBeLessThan(UNREAD_BYTES_MAX + 64 * 1024);
  connection.socket.resume();
  await connection.until((received) => received.slice(-1_000).includes('event: lost'));
  tell();
  await connection.until((received) => received.slice(-20_000).includes(`id: 1-${told}\n`));
  const lost = dataOf(connection, 'lost').reduce((sum, { count }) => sum + count, 0);
  expect(dataOf(connection, 'entry').length + lost).toBe(told);
  expect(lost).toBeGreaterThanOrEqual(1_000);
});
