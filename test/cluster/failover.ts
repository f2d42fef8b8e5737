/**
 * Kills the primary under load, promotes its standby, and redirects the workers to it. With a synchronous standby, no
 * acknowledged message is lost. With an asynchronous standby, only messages that had not reached it are lost, and the test
 * makes sure that there are some. The position of each acknowledgement in the write-ahead log of the primary shows which
 * messages these are.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { LANES } from '../crash/lane-load.ts';
import { eventually } from '../support/eventually.ts';
import type { PostgresVersion } from '../support/postgres/binaries.ts';
import { type Pair, startPair } from '../support/postgres/standby.ts';
import { type Judgement, judge } from './judge.ts';
import { type Databases, fateOf, storyOf } from './lost-messages.ts';
import type { Recovery } from './pace.ts';
import { type Fate, WalLedger } from './wal-ledger.ts';
import { ON_ITS_WAY, openWorld, type World } from './world.ts';

export interface FailoverOptions {
  synchronous: boolean;
  seed: number;
  version: PostgresVersion;
  /** The share of the earlier pace that counts as recovered. */
  recovery: Recovery;
}

export interface FailoverReport extends Judgement {
  /** The time from the death of the primary until the earlier pace is reached again, in milliseconds. */
  recoveredAfterMs: number;
  /** The number of lost acknowledged messages, by fate. */
  fates: Record<Fate, number>;
  /**
   * Descriptions of lost messages that should exist. With a synchronous standby these are all lost messages, otherwise
   * the lost messages that the standby may have received.
   */
  lostWithoutExcuse: string[];
}

/** The duration of the load before and after the failover. */
const LOAD_MS = 3_000;
/** How long an asynchronous standby receives nothing before the primary dies. */
const LAG_MS = 700;

export async function failOver({ synchronous, seed, version, recovery }: FailoverOptions): Promise<FailoverReport> {
  const pair = await startPair({ version, synchronous });
  try {
    const ledger = new WalLedger(ON_ITS_WAY);
    const world = await openWorld({ seed, cluster: pair.primary, ledger });
    try {
      const followed = ledger.follow(pair.primary);
      await world.begin();
      await sleep(LOAD_MS);
      const before = await world.pace.steady();
      if (!synchronous) await leaveBehind(pair);
      const diedAtMs = performance.now();
      let firstXid = '';
      await world.disturb(async () => {
        await pair.primary.kill();
        await pair.promote();
        firstXid = await nextXid(pair);
        world.moveTo(pair.standby);
      });
      await followed;
      await world.pace.untilRecovered(before, recovery);
      const recoveredAfterMs = performance.now() - diedAtMs;
      await sleep(LOAD_MS);
      await world.calmDown();
      await resumeAll(world);
      const judgement = await judge(world);
      await pair.primary.start(); // the workers are already redirected to the standby
      const database = new URL(world.databaseUrl).pathname.slice(1);
      const position = await lastPosition(pair);
      const databases = { left: pair.primary, taken: pair.standby, database, position, firstXid };
      return { ...judgement, recoveredAfterMs, ...(await explain(judgement, { synchronous, ledger, databases })) };
    } finally {
      await world.close();
    }
  } finally {
    await pair.dispose();
  }
}

/** Resumes lanes: a standby that lagged behind may have received a pause but not its end. */
async function resumeAll({ client }: World): Promise<void> {
  for (const { kind, name } of LANES) {
    const reply = await client.call('POST', `/v2/${kind === 'queue' ? 'queues' : 'flowControl'}/${name}/resume`);
    if (reply.kind !== 'ok' && !(reply.kind === 'refused' && reply.status === 404)) {
      throw new Error(`resume ${name}: ${JSON.stringify(reply)}`);
    }
  }
}

/** Waits until the standby has caught up during the load, and then cuts its replication. */
async function leaveBehind({ primary, standby, link }: Pair): Promise<void> {
  const [row] = await primary.query('select pg_current_wal_flush_lsn()::text lsn');
  await eventually('the standby to have it', async () => {
    const [received] = await standby.query('select pg_last_wal_receive_lsn() >= $1::pg_lsn enough', [row?.['lsn']]);
    return received?.['enough'] === true;
  });
  link.stall();
  await sleep(LAG_MS);
}

async function explain(
  { broken }: Judgement,
  { synchronous, ledger, databases }: { synchronous: boolean; ledger: WalLedger; databases: Databases },
): Promise<Pick<FailoverReport, 'fates' | 'lostWithoutExcuse'>> {
  const fates: Record<Fate, number> = { replicated: 0, 'left behind': 0, unclear: 0 };
  const lostWithoutExcuse: string[] = [];
  for (const id of broken['P1 lost']) {
    const fate = await fateOf(id, ledger, databases);
    fates[fate] += 1;
    if (synchronous || fate !== 'left behind') lostWithoutExcuse.push(await storyOf(id, ledger, databases));
  }
  return { fates, lostWithoutExcuse };
}

/** The first transaction id that the promoted standby assigns. */
async function nextXid({ standby }: Pair): Promise<string> {
  const [row] = await standby.query('select pg_snapshot_xmax(pg_current_snapshot())::text as xid');
  return String(row?.['xid']);
}

/** The position up to which the promoted standby has the log of the old primary. */
async function lastPosition({ standby }: Pair): Promise<number> {
  const [row] = await standby.query(
    `select (pg_last_wal_replay_lsn() - '0/0')::text as replayed, (pg_last_wal_receive_lsn() - '0/0')::text as received`,
  );
  const [replayed, received] = [Number(row?.['replayed']), Number(row?.['received'])];
  // Only an incomplete record at the end may be missing.
  if (!(replayed <= received)) throw new Error(`replayed up to ${replayed}, received up to ${received}`);
  return replayed;
}
