/** A database that responds but refuses what the store needs makes only its own projects unavailable. */
import pg from 'pg';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { testFolder } from '../support/folder.ts';
import { type InProcessServer, serveInProcess } from '../support/in-process-server.ts';
import { freshDatabase } from '../support/postgres/shared.ts';
import { outputOf, projectWithToken } from '../support/waypost-command.ts';

interface Place {
  role: string;
  database: string;
  /** Runs a statement as an administrator in the database. */
  execute(text: string): Promise<void>;
  /** Runs a statement as an administrator in another database. */
  executeOutside(text: string): Promise<void>;
}

interface Breakage {
  name: string;
  spoil(place: Place): Promise<void>;
  repair(place: Place): Promise<void>;
  /** The reason in `/readyz` and in the log. */
  reason: string;
}

const endSessions = ({ executeOutside, database }: Place) =>
  executeOutside(`select pg_terminate_backend(pid) from pg_stat_activity where datname = '${database}'`);

const BREAKAGES: Breakage[] = [
  {
    name: 'a database that allows no connections',
    spoil: async (place) => {
      await place.executeOutside(`alter database ${place.database} allow_connections false`);
      await endSessions(place);
    },
    repair: (place) => place.executeOutside(`alter database ${place.database} allow_connections true`),
    reason: 'it accepts no connections, SQLSTATE 55000',
  },
  {
    name: 'a database to which the role may not connect',
    spoil: async (place) => {
      await place.executeOutside(`revoke connect on database ${place.database} from public`);
      await endSessions(place);
    },
    repair: (place) => place.executeOutside(`grant connect on database ${place.database} to public`),
    reason: 'a privilege is missing, SQLSTATE 42501',
  },
  {
    name: 'tables that the role may not use',
    spoil: ({ execute, role }) => execute(`revoke all on all tables in schema kept from ${role}`),
    repair: ({ execute, role }) => execute(`grant all on all tables in schema kept to ${role}`),
    reason: 'a privilege is missing, SQLSTATE 42501',
  },
  {
    name: 'a missing table',
    spoil: ({ execute }) => execute('alter table kept.messages rename to gone'),
    repair: ({ execute }) => execute('alter table kept.gone rename to messages'),
    reason: 'a table is missing, SQLSTATE 42P01',
  },
];

/** The schema of a store is determined when it is opened. */
const WRONG_PATH: Breakage = {
  name: 'a search path that leads elsewhere',
  spoil: ({ execute, role, database }) =>
    execute(`create schema elsewhere authorization ${role};
             alter role ${role} in database ${database} set search_path = elsewhere`),
  repair: ({ execute, role, database }) => execute(`alter role ${role} in database ${database} set search_path = kept`),
  reason: 'the database has no store in the schema that is searched for its tables',
};

// One function distinguishes rejected statements from unreachable databases, so one case of each kind is enough.
const ONE_CELL = BREAKAGES.filter(({ name }) => /no connections|missing table/.test(name));
const AT_FIRST = [...ONE_CELL, WRONG_PATH];

let folder: string;
let env: Record<string, string>;
let place: Place;
/** The URL of the broken database, for a role that is not a superuser. */
let url: string;
const servers: InProcessServer[] = [];

async function executeAt(connectionString: string, text: string): Promise<void> {
  const client = new pg.Client({ connectionString });
  await client.connect();
  try {
    await client.query(text);
  } finally {
    await client.end();
  }
}

beforeEach(async () => {
  folder = testFolder();
  const admin = await freshDatabase();
  const outside = new URL(admin);
  const database = outside.pathname.slice(1);
  outside.pathname = '/postgres';
  const role = `user_of_${database}`;
  const own = new URL(admin);
  own.username = role;
  url = own.href;
  place = {
    role,
    database,
    execute: (text) => executeAt(admin, text),
    executeOutside: (text) => executeAt(outside.href, text),
  };
  await place.execute(`create role ${role} login; create schema kept authorization ${role};
    alter role ${role} in database ${database} set search_path = kept`);
  env = { WAYPOST_DATA_DIR: folder, WAYPOST_ALLOW_DESTINATIONS: '127.0.0.1' };
});

afterEach(async () => {
  await Promise.all(servers.splice(0).map((server) => server.stop()));
  await place.execute(`drop owned by ${place.role}; drop role ${place.role}`);
});

const done = (...args: string[]): Promise<string> => outputOf(args, env);

async function serve(): Promise<InProcessServer> {
  const server = await serveInProcess(['serve'], env);
  servers.push(server);
  return server;
}

async function publish({ url: at }: InProcessServer, token: string): Promise<number> {
  const headers = { authorization: `Bearer ${token}`, 'upstash-delay': '1h' };
  return (await fetch(`${at}/v2/publish/http://127.0.0.1:1/`, { method: 'POST', headers })).status;
}

async function readiness({ url: at }: InProcessServer): Promise<{ status: number; reason?: string | undefined }> {
  const response = await fetch(`${at}/readyz`);
  const body = (await response.json()) as { error?: string; reasons?: Record<string, string> };
  return { status: response.status, reason: response.status === 200 ? body.reasons?.['second'] : body.error };
}

const logged = (server: InProcessServer, reason: string) =>
  eventually('the log says why', () =>
    server.events.some(({ level, ...fields }) => level === 'warn' && String(fields['reason']).includes(reason)),
  );

describe.each(ONE_CELL)('$name', ({ spoil, repair, reason }) => {
  it('makes the only cell unavailable until it is repaired, and its worker continues to run', async () => {
    env['WAYPOST_DATABASE_URL'] = url;
    await done('init');
    const token = await projectWithToken('shop', env);
    const server = await serve();
    expect(await publish(server, token)).toBe(200);
    await spoil(place);
    expect(await publish(server, token)).toBe(503);
    await eventually('the worker is not ready, and says why', async () => {
      const { status, reason: told } = await readiness(server);
      return status === 503 && told?.includes(reason);
    });
    await logged(server, reason);
    await repair(place);
    await eventually('the worker is ready again', async () => (await readiness(server)).status === 200);
    expect(await publish(server, token)).toBe(200);
  });
});

describe.each(BREAKAGES)('one of two cells with $name', ({ spoil, repair, reason }) => {
  it('makes only its own projects unavailable until it is repaired', async () => {
    const { server, first, second } = await serveTwo();
    await opened(server);
    expect(await publish(server, second)).toBe(200);
    await spoil(place);
    expect([await publish(server, second), await publish(server, first)]).toEqual([503, 200]);
    await eventually('/readyz says why', async () => (await readiness(server)).reason?.includes(reason));
    await logged(server, reason);
    await repair(place);
    await eventually('its projects are served again', async () => (await publish(server, second)) === 200);
    await eventually('/readyz names it no more', async () => (await readiness(server)).reason === undefined);
  });
});

describe.each(AT_FIRST)('one of two cells that has $name at first', ({ spoil, repair, reason }) => {
  it('is opened once it is repaired, and does not prevent a worker from starting', async () => {
    const { server, first, second } = await serveTwo(() => spoil(place));
    expect([await publish(server, second), await publish(server, first)]).toEqual([503, 200]);
    await eventually('/readyz says why', async () => (await readiness(server)).reason?.includes(reason));
    await logged(server, reason);
    await repair(place);
    await eventually('its projects are served', async () => (await publish(server, second)) === 200);
  });
});

async function serveTwo(before = async () => {}): Promise<{ server: InProcessServer; first: string; second: string }> {
  env['WAYPOST_DATABASE_URL'] = await freshDatabase();
  await done('init');
  const first = await projectWithToken('in-first', env);
  await done('cells', 'add', 'second', '--url', url);
  const second = await projectWithToken('in-second', env);
  await before();
  return { server: await serve(), first, second };
}

const opened = (server: InProcessServer) =>
  eventually('the worker opens the cell', () => server.events.some(({ event }) => event === 'cell_opened'));
