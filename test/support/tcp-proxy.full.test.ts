import pg from 'pg';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { eventually } from './eventually.ts';
import { CommitWatch } from './postgres/commit-watch.ts';
import { freshDatabase } from './postgres/shared.ts';
import { TcpProxy } from './tcp-proxy.ts';

describe('a proxy before PostgreSQL', () => {
  let directUrl: string;
  let direct: pg.Client;
  let proxy: TcpProxy;
  const opened: pg.Client[] = [];

  async function connected(url = proxy.through(directUrl)): Promise<pg.Client> {
    const client = new pg.Client({ connectionString: url });
    client.on('error', () => undefined); // the running query reports the same error
    await client.connect();
    opened.push(client);
    return client;
  }

  const rows = async (client: pg.Client) => (await client.query<{ n: number }>('select n from t')).rows;

  async function otherSessions(): Promise<number | null> {
    const { rowCount } = await direct.query(
      "select 1 from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend'",
    );
    return rowCount;
  }

  beforeAll(async () => {
    directUrl = await freshDatabase();
    proxy = await TcpProxy.open(Number(new URL(directUrl).port));
    direct = await connected(directUrl);
    await direct.query('create table t (n int primary key, filler bytea)');
  });
  beforeEach(async () => {
    await Promise.allSettled(opened.splice(1).map((client) => client.end())); // all clients except `direct`
    await direct.query('truncate t');
  });
  afterAll(async () => {
    await Promise.allSettled(opened.map((client) => client.end()));
    await proxy.close();
  });

  it('hands on everything, however long, both ways', async () => {
    const client = await connected();
    const filler = Buffer.alloc(5_000_000, 7);
    await client.query('insert into t values (1, $1)', [filler]);
    const read = await client.query<{ filler: Buffer }>('select filler from t');
    expect(read.rows[0]?.filler.equals(filler)).toBe(true);
    await client.end();
    await eventually('the link to be gone', () => proxy.connections === 0);
  });

  it('delays each way', async () => {
    const client = await connected();
    proxy.delayMs = 40;
    const startedAt = performance.now();
    await client.query('select 1');
    const tookMs = performance.now() - startedAt;
    proxy.delayMs = 0;
    expect(tookMs).toBeGreaterThanOrEqual(79);
    expect(tookMs).toBeLessThan(1_000);
  });

  it.each(['reset', 'end'] as const)('cuts every connection: %s', async (cut) => {
    const client = await connected();
    const failed = expect(client.query('select pg_sleep(60)')).rejects.toThrow(/ECONNRESET|terminated/);
    proxy.cutAll(cut);
    await failed;
    await eventually('the link to be gone', () => proxy.connections === 0);
  });

  it('is half-open while it is stalled: no bytes and no closes arrive, and then all of them do', async () => {
    const client = await connected();
    proxy.stall();
    const late = client.query('insert into t values (1)');
    const newcomer = connected(); // accepted, but not forwarded
    await eventually('both to be held', () => proxy.connections === 2);
    await direct.query('select 1');
    expect(await rows(direct)).toEqual([]);
    proxy.flow();
    await late;
    await (await newcomer).query('select 1');
    expect(await rows(direct)).toEqual([{ n: 1 }]);
  });

  describe.each([
    ['a simple query', { text: 'commit' }, [1]],
    ['a simple query of several statements', { text: 'insert into t values (2); commit' }, [1, 2]],
    ['a prepared statement', { name: 'c', text: 'commit' }, [1]],
    ['an unnamed statement of the extended protocol', { text: 'COMMIT', queryMode: 'extended' }, [1]],
  ] as const)('cuts at a commit that is %s', (_, commit, committed) => {
    it.each(['after', 'before'] as const)('%s the server was sent it', async (when) => {
      const client = await connected();
      if ('name' in commit) {
        await client.query('begin');
        await client.query({ ...commit }); // parsed now; later only bound and executed
      }
      await client.query('begin');
      await client.query('insert into t values (1)');
      const cut = proxy.cutAtCommit(when);
      await expect(client.query({ ...commit })).rejects.toThrow(/ECONNRESET|terminated/);
      await cut;
      await eventually('the server to let go of it', async () => (await otherSessions()) === 0);
      const kept = when === 'after' ? committed : [];
      expect((await rows(direct)).map(({ n }) => n)).toEqual(kept);
      expect(await rows(await connected())).toHaveLength(kept.length); // the next commit is not cut
    });
  });

  it('sends new connections to another server once it points there', async () => {
    const other = await freshDatabase(14);
    proxy.pointTo(Number(new URL(other).port));
    const client = await connected(proxy.through(other));
    const { rows: found } = await client.query<{ server_version: string }>('show server_version');
    proxy.pointTo(Number(new URL(directUrl).port));
    expect(found[0]?.server_version).toMatch(/^14\./);
  });

  it('refuses connections when nothing listens where it points to', async () => {
    const gone = await TcpProxy.open(1);
    const { port } = gone;
    await gone.close();
    proxy.pointTo(port);
    await expect(connected()).rejects.toThrow(/ECONNRESET|terminated/);
    proxy.pointTo(Number(new URL(directUrl).port));
    expect(await rows(await connected())).toEqual([]);
  });
});

describe('the watch for commits', () => {
  const message = (type: string, ...strings: string[]) => {
    const payload = Buffer.from(`${strings.join('\0')}\0`);
    const head = Buffer.alloc(type.length + 4);
    head.write(type, 'latin1');
    head.writeUInt32BE(payload.length + 4, type.length);
    return Buffer.concat([head, payload]);
  };
  const SYNC = Buffer.from([0x53, 0, 0, 0, 4]);
  const START = Buffer.concat([Buffer.from([0, 0, 0, 9, 0, 3, 0, 0]), Buffer.from([0])]);

  it('finds the same ends however the bytes are cut into chunks', () => {
    const talk = [
      START,
      message('Q', 'begin'),
      message('Q', "select 'commit'"),
      message('Q', 'select 1;  Commit ;'),
      message('P', 's1', 'commit', ''),
      message('B', '', 's1', ''),
      message('E', '', '\0\0\0'),
      SYNC,
    ];
    const bytes = Buffer.concat(talk);
    const lengths = talk.map(({ length }) => length);
    const sum = (count: number) => lengths.slice(0, count).reduce((total, length) => total + length, 0);
    const ends = [sum(4), sum(8)];
    for (const size of [1, 2, 3, 7, 11, bytes.length]) {
      const watch = new CommitWatch();
      const found: number[] = [];
      for (let at = 0; at < bytes.length; at += size) {
        found.push(...watch.feed(bytes.subarray(at, at + size)).map((end) => at + end));
      }
      expect(found, `in chunks of ${size}`).toEqual(ends);
    }
  });

  it('forgets that a name stood for a commit once it stands for something else', () => {
    const watch = new CommitWatch();
    const execute = [message('B', '', '', ''), message('E', '', '\0\0\0'), SYNC];
    expect(watch.feed(Buffer.concat([START, message('P', '', 'commit', ''), ...execute]))).toHaveLength(1);
    expect(watch.feed(Buffer.concat([message('P', '', 'select 1', ''), ...execute]))).toEqual([]);
  });
});
