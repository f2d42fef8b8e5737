/** The meaning of `sslmode` and its related parameters, against servers that have TLS, require it, or lack it. */
import { chmodSync, chownSync, copyFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { StoreUnavailable } from '../../src/engine/store-errors.ts';
import { locationOf } from '../../src/store/drivers/postgres/connections/url.ts';
import { PostgresDriver } from '../../src/store/drivers/postgres/driver.ts';
import { ListenConnection } from '../../src/store/drivers/postgres/listen-connection.ts';
import { systemClock } from '../../src/system/system.ts';
import { RUN_AS } from '../support/postgres/binaries.ts';
import { type Cluster, makeFolder, startCluster } from '../support/postgres/cluster.ts';
import { freshDatabase } from '../support/postgres/shared.ts';

/** Generated for these tests, valid for a century. The server certificate names only localhost. */
const fixture = (name: string) => fileURLToPath(new URL(`fixtures/tls/${name}`, import.meta.url));
const AUTHORITY = fixture('authority.pem');
const OTHER_AUTHORITY = fixture('other-authority.pem');
const CLIENT = { sslcert: fixture('client.pem'), sslkey: fixture('client.key') };

/** Databases, by the requirements of the server for connections to them. */
const ACCESS = `
host    postgres  all all trust
host    any       all all trust
hostssl encrypted all all trust
hostnossl plain   all all trust
hostssl certified all all cert
host    bound     all all scram-sha-256
`;

let server: Cluster;
let withoutTls: string;
let warnings: Error[];
const note = (warning: Error) => void warnings.push(warning);

beforeAll(async () => {
  const folder = makeFolder();
  for (const name of ['authority.pem', 'server.pem', 'server.key']) {
    copyFileSync(fixture(name), join(folder, name));
    chmodSync(join(folder, name), 0o600);
    if (RUN_AS) chownSync(join(folder, name), RUN_AS.uid, RUN_AS.gid);
  }
  writeFileSync(join(folder, 'access.conf'), ACCESS);
  const settings = {
    ssl: 'on',
    ssl_ca_file: join(folder, 'authority.pem'),
    ssl_cert_file: join(folder, 'server.pem'),
    ssl_key_file: join(folder, 'server.key'),
    hba_file: join(folder, 'access.conf'),
  };
  server = await startCluster({ folder, settings });
  for (const name of ['any', 'encrypted', 'plain', 'certified', 'bound']) await server.createDatabase(name);
  await server.query("create role somebody login password 'secret'");
  withoutTls = await freshDatabase();
});
afterAll(() => server?.dispose());
beforeEach(() => {
  warnings = [];
  process.on('warning', note);
});
afterEach(() => {
  process.off('warning', note);
  expect(warnings).toEqual([]); // the terminal is this program's alone
});

function urlOf(database: string, parameters: Record<string, string>, host = '127.0.0.1'): string {
  const url = new URL(database === 'none' ? withoutTls : server.url(database));
  url.hostname = host;
  for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value);
  return url.href;
}

/** Whether a new connection is encrypted. */
async function isEncrypted(url: string): Promise<boolean> {
  const driver = new PostgresDriver({ url, connectionsMax: 2, timeoutMs: 10_000, prepares: true, clock: systemClock });
  try {
    const ask = 'select ssl from pg_stat_ssl where pid = pg_backend_pid()';
    const [row] = await driver.read((queries) => queries.query<{ ssl: 0 | 1 }>(ask));
    return row?.ssl === 1;
  } finally {
    await driver.close();
  }
}

describe.each([
  [undefined, { any: true, encrypted: true, plain: false, none: false }],
  ['disable', { any: false, encrypted: 'refused', plain: false, none: false }],
  ['allow', { any: false, encrypted: true, plain: false, none: false }],
  ['prefer', { any: true, encrypted: true, plain: false, none: false }],
  ['require', { any: true, encrypted: true, plain: 'refused', none: 'refused' }],
  ['verify-ca', { any: true, encrypted: true, plain: 'refused', none: 'refused' }],
  ['verify-full', { any: true, encrypted: true, plain: 'refused', none: 'refused' }],
])('sslmode=%s', (sslmode, outcomes) => {
  it.each(Object.entries(outcomes))(
    'with a server that takes connections of this kind: %s',
    async (database, outcome) => {
      const url = urlOf(
        database,
        { ...(sslmode !== undefined && { sslmode }), ...(sslmode?.startsWith('verify') && { sslrootcert: AUTHORITY }) },
        'localhost',
      );
      if (outcome === 'refused') await expect(isEncrypted(url)).rejects.toThrow(StoreUnavailable);
      else expect(await isEncrypted(url)).toBe(outcome);
    },
  );
});

describe('the certificate of the server', () => {
  it.each([
    ['any, where none is to be verified', 'require', undefined, '127.0.0.1'],
    ['of the authority that is given', 'require', AUTHORITY, '127.0.0.1'],
    ['of the authority that is given', 'verify-ca', AUTHORITY, '127.0.0.1'],
    ['of the authority that is given, for the host of the URL', 'verify-full', AUTHORITY, 'localhost'],
  ])('is accepted: %s (%s)', async (_, sslmode, sslrootcert, host) => {
    expect(await isEncrypted(urlOf('any', { sslmode, ...(sslrootcert && { sslrootcert }) }, host))).toBe(true);
  });

  it.each([
    ['require', OTHER_AUTHORITY, 'localhost', 'sslrootcert must name a file with the authority'],
    ['verify-ca', OTHER_AUTHORITY, 'localhost', 'sslrootcert must name a file with the authority'],
    ['verify-full', OTHER_AUTHORITY, 'localhost', 'sslrootcert must name a file with the authority'],
    ['verify-full', undefined, 'localhost', 'sslrootcert must name a file with the authority'],
    ['verify-full', 'system', 'localhost', 'sslrootcert must name a file with the authority'],
    ['verify-full', AUTHORITY, '127.0.0.1', 'the host of the URL must be one that its certificate names'],
  ])('is refused with the parameter that would help: %s, %o, %s', async (sslmode, sslrootcert, host, remedy) => {
    const reading = isEncrypted(urlOf('any', { sslmode, ...(sslrootcert && { sslrootcert }) }, host));
    await expect(reading).rejects.toThrow(StoreUnavailable);
    await expect(reading).rejects.toThrow(remedy);
  });

  it('is not requested from a server without TLS, which is named as the reason', async () => {
    await expect(isEncrypted(urlOf('none', { sslmode: 'require' }))).rejects.toThrow(
      'sslmode=disable connects without',
    );
  });
});

describe('the certificate of this program', () => {
  it('is sent to a server that asks for it', async () => {
    expect(await isEncrypted(urlOf('certified', { sslmode: 'require', ...CLIENT }))).toBe(true);
    await expect(isEncrypted(urlOf('certified', { sslmode: 'require' }))).rejects.toThrow(StoreUnavailable);
  });
});

describe('channel_binding=require', () => {
  const bound = (sslmode: string) => {
    const url = new URL(urlOf('bound', { sslmode, channel_binding: 'require' }));
    url.username = 'somebody';
    url.password = 'secret';
    return url.href;
  };

  it('proves that the server knows the password, on the encrypted connection', async () => {
    expect(await isEncrypted(bound('require'))).toBe(true);
  });

  it('refuses a server that cannot prove it, or asks for no password', async () => {
    const refusal = 'the server does not offer SCRAM-SHA-256-PLUS';
    await expect(isEncrypted(bound('disable'))).rejects.toThrow(refusal);
    await expect(isEncrypted(urlOf('any', { channel_binding: 'require' }))).rejects.toThrow(refusal);
  });
});

it('a listener connects to a server of either kind', async () => {
  for (const database of ['encrypted', 'plain', 'none']) {
    const listenConnection = new ListenConnection({ url: urlOf(database, {}), timeoutMs: 10_000, clock: systemClock });
    await new Promise<void>((resolve) =>
      listenConnection.add('waypost_due', { onNotification: () => {}, onGap: resolve }),
    );
    await listenConnection.remove('waypost_due');
  }
});

describe('a URL is refused that', () => {
  const open = (parameters: string) => () =>
    new PostgresDriver({
      url: `postgres://somebody:secret@localhost/waypost?${parameters}`,
      ...{ connectionsMax: 1, timeoutMs: 1_000, prepares: true, clock: systemClock },
    });

  it.each([
    ['search_path=app', 'an unknown parameter "search_path": "schema" names the schema of the tables'],
    ['Schema=app', 'an unknown parameter "Schema": "schema" names the schema of the tables'],
    ['ssl=true', 'an unknown parameter "ssl": "sslmode" says how to encrypt'],
    ['pgbouncer=true', 'an unknown parameter "pgbouncer"'],
    ['schema=a&schema=b', 'the parameter "schema" more than once'],
  ])('has a parameter without effect: %s', (parameters, refusal) => {
    expect(() => locationOf(`postgres://localhost/waypost?${parameters}`)).toThrow(refusal);
    expect(open(parameters)).toThrow(refusal);
  });

  it.each([
    ['sslmode=verify', 'sslmode must be one of disable, allow, prefer, require, verify-ca, verify-full, not "verify"'],
    ['sslmode=no-verify', 'not "no-verify": "require" encrypts without verification'],
    ['sslmode=verify-ca', 'sslmode=verify-ca needs sslrootcert'],
    ['sslmode=require&sslrootcert=system', 'sslrootcert=system needs sslmode=verify-full'],
    ['sslmode=require&sslrootcert=/nowhere.pem', 'sslrootcert cannot be read: ENOENT'],
    ['sslmode=require&sslcert=/nowhere.pem', 'sslcert cannot be read: ENOENT'],
    [`sslmode=require&sslcert=${CLIENT.sslcert}`, 'sslcert and sslkey must be given together'],
    ['channel_binding=always', 'channel_binding must be one of disable, prefer, require, not "always"'],
  ])('cannot be followed: %s', (parameters, refusal) => {
    expect(open(parameters)).toThrow(refusal);
  });
});
