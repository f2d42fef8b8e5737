/**
 * The primary is killed under load, its standby takes over, and the workers are led there. With a synchronous standby nothing
 * that was acknowledged is lost; with an asynchronous one only what had not reached the standby, and the test makes sure that
 * there is some.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { LANES } from '../crash/lane-load.ts';
import { eventually } from '../support/eventually.ts';
import type { PostgresVersion } from '../support/postgres/binaries.ts';
import { type Pair, startPair } from '../support/postgres/standby.ts';
import { type Judgement, judge } from './judge.ts';
import { PROMISED } from './pace.ts';
import { openWorld, type World } from './world.ts';

export interface FailoverOptions {
  synchronous: boolean;
  seed: number;
  version: PostgresVersion;
}

export interface FailoverReport extends Judgement {
  /** From the death of the primary to the pace that there was before, in milliseconds. */
  recoveredAfterMs: number;
  /** Acknowledged messages that are gone although the standby had everything when they were acknowledged. */
  lostWithoutExcuse: string[];
}

/** Under load before and after. */
const LOAD_MS = 3_000;
/** How long an asynchronous standby hears nothing before the primary dies. */
const LAG_MS = 700;

export async function failOver({ synchronous, seed, version }: FailoverOptions): Promise<FailoverReport> {
  const pair = await startPair({ version, synchronous });
  try {
    const world = await openWorld({ seed, cluster: pair.primary });
    try {
      await world.begin();
      await sleep(LOAD_MS);
      const before = await world.pace.steady();
      const replicated = synchronous ? undefined : await leaveBehind(pair, world);
      const diedAtMs = performance.now();
      await world.disturb(async () => {
        await pair.primary.kill();
        await pair.promote();
        world.moveTo(pair.standby);
      });
      await world.pace.untilRecovered(before, PROMISED);
      const recoveredAfterMs = performance.now() - diedAtMs;
      await sleep(LOAD_MS);
      await world.calmDown();
      await resumeAll(world);
      const judgement = await judge(world);
      const { lost } = judgement.verdict;
      const lostWithoutExcuse = replicated === undefined ? lost : lost.filter((id) => replicated.has(id));
      return { ...judgement, recoveredAfterMs, lostWithoutExcuse };
    } finally {
      await world.close();
    }
  } finally {
    await pair.dispose();
  }
}

/** A standby that lagged behind knows of pauses whose end it never heard of. */
async function resumeAll({ client }: World): Promise<void> {
  for (const { kind, name } of LANES) {
    const reply = await client.call('POST', `/v2/${kind === 'queue' ? 'queues' : 'flowControl'}/${name}/resume`);
    if (reply.kind !== 'ok' && !(reply.kind === 'refused' && reply.status === 404)) {
      throw new Error(`resume ${name}: ${JSON.stringify(reply)}`);
    }
  }
}

/** Answers what is acknowledged and has reached the standby; from then on nothing reaches it. */
async function leaveBehind({ primary, standby, link }: Pair, world: World): Promise<ReadonlySet<string>> {
  const acknowledged = new Set(world.books.ledger.acknowledged());
  const [row] = await primary.query('select pg_current_wal_flush_lsn()::text lsn');
  await eventually('the standby to have it', async () => {
    const [received] = await standby.query('select pg_last_wal_receive_lsn() >= $1::pg_lsn enough', [row?.['lsn']]);
    return received?.['enough'] === true;
  });
  link.stall();
  await sleep(LAG_MS);
  return acknowledged;
}
