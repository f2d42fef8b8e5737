import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually } from '../eventually.ts';
import { type Pair, startPair } from './standby.ts';

describe.each([
  { synchronous: true, version: 14 },
  { synchronous: false, version: 18 },
] as const)('a pair of PostgreSQL $version, synchronous: $synchronous', ({ synchronous, version }) => {
  let pair: Pair;
  beforeAll(async () => {
    pair = await startPair({ version, synchronous });
    await pair.primary.query('create table t (n int); insert into t values (1)');
  });
  afterAll(() => pair.dispose());

  it('brings to the standby what the primary commits', async () => {
    const found = async () => (await pair.standby.query("select to_regclass('t') found"))[0]?.['found'] === 't';
    await eventually('the table to arrive', found);
    expect(await pair.standby.query('select n from t')).toEqual([{ n: 1 }]); // a row of the same transaction
    await expect(pair.standby.query('insert into t values (2)')).rejects.toThrow(/read-only/);
  });

  it(`${synchronous ? 'answers no' : 'answers a'} commit while the standby is out of reach`, async () => {
    pair.link.stall();
    const commit = pair.primary.query('insert into t values (2)').then(() => 'responded');
    const waiting = async () => {
      const rows = await pair.primary.query("select 1 from pg_stat_activity where wait_event = 'SyncRep'");
      return rows.length === 1 && 'waiting';
    };
    const first = synchronous ? eventually('the commit to wait for the standby', waiting) : commit;
    expect(await Promise.race([commit, first])).toBe(synchronous ? 'waiting' : 'responded');
    pair.link.flow();
    await commit;
    await eventually('the row to arrive', async () => (await pair.standby.query('select n from t')).length === 2);
  });

  it('takes writes on the standby once the primary was killed and it was promoted', async () => {
    await pair.primary.kill();
    await pair.promote();
    await pair.standby.query('insert into t values (3)');
    expect(await pair.standby.query('select n from t order by n')).toEqual([{ n: 1 }, { n: 2 }, { n: 3 }]);
  });
});
