/**
 * `npm run cluster`: runs the tests of this folder for as long as requested.
 *
 *   --rounds 20 --seed 7          all faults, in another order each round
 *   --rounds 5 --outage 60        and PostgreSQL is down for a minute in each round
 *   --only killed --workers 5     only faults whose name contains the word
 *   --failover sync               the primary fails and a synchronous standby is promoted: nothing may be lost
 *   --failover async              a lagging standby is promoted: only messages that it lacks may be lost
 *   --failover async --rounds 5   the same, five times
 *   --patient                     checks only that work continues, not its rate: for a busy machine, and for many rounds
 *   --hung 5                      measures the effect of a worker that hangs within a batch, this many times
 *   --hung 5 --program <folder>   the same with the program of another checkout
 *   --postgres 14                 on the oldest supported version
 *   --pooler 7                    through PgBouncer in transaction mode, with this many connections to PostgreSQL
 */
import { parseArgs } from 'node:util';
import type { PostgresVersion } from '../support/postgres/binaries.ts';
import { startCluster } from '../support/postgres/cluster.ts';
import { Pooler } from '../support/postgres/pooler.ts';
import type { SeededRandom } from '../support/seeded-random.ts';
import { type FailoverOptions, failOver } from './failover.ts';
import { CONNECTION_FAULTS, type Fault, outage, POOLER_FAULTS, SERVER_FAULTS, WORKER_FAULTS } from './faults.ts';
import { measureHungWorker } from './hung-worker.ts';
import { type Judgement, judge } from './judge.ts';
import { PROMISED, type Recovery } from './pace.ts';
import { openWorld } from './world.ts';

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '1' },
    seed: { type: 'string', default: String(process.pid) },
    workers: { type: 'string', default: '3' },
    outage: { type: 'string', default: '5' },
    only: { type: 'string', default: '' },
    failover: { type: 'string' },
    patient: { type: 'boolean', default: false },
    hung: { type: 'string' },
    program: { type: 'string' },
    postgres: { type: 'string', default: '18' },
    pooler: { type: 'string' },
  },
});

const seed = Number(values.seed);
/** A busy machine stalls for seconds. */
const recovery: Recovery = values.patient ? { share: 0.3, limitMs: 60_000 } : PROMISED;
const version: PostgresVersion = values.postgres === '14' ? 14 : 18;
say(`seed ${seed}, PostgreSQL ${version}`);
if (values.hung !== undefined) await runHung(Number(values.hung));
else if (values.failover === undefined) await runRounds();
else await runFailovers(values.failover === 'sync');

async function runRounds(): Promise<void> {
  const faults: [string, Fault][] = Object.entries({
    ...inWords('a worker', WORKER_FAULTS),
    ...inWords('connections', CONNECTION_FAULTS),
    ...inWords('PostgreSQL', {
      ...SERVER_FAULTS,
      [`is gone for ${values.outage} s`]: outage(Number(values.outage) * 1_000),
    }),
    ...(values.pooler === undefined ? {} : inWords('PgBouncer', POOLER_FAULTS)),
  }).filter(([name]) => name.includes(values.only));
  const cluster = await startCluster({ version, settings: { fsync: 'on', max_connections: '60' } });
  const pooler =
    values.pooler === undefined
      ? undefined
      : await Pooler.open({ port: cluster.port, poolSize: Number(values.pooler) });
  try {
    for (let round = 1; round <= Number(values.rounds); round += 1) {
      const world = await openWorld({
        seed: seed + round,
        cluster,
        workers: Number(values.workers),
        ...(pooler && { pooler }),
      });
      try {
        await world.begin();
        for (const [name, fault] of shuffled(faults, world.random)) {
          const { perSecond, tookMs } = await world.recoverFrom(fault, recovery);
          say(`round ${round}: ${name}: ${perSecond.toFixed(0)}/s again after ${tookMs.toFixed(0)} ms`);
        }
        await world.calmDown();
        report(await judge(world));
      } finally {
        await world.close();
      }
    }
  } finally {
    await pooler?.close();
    await cluster.dispose();
  }
}

async function runFailovers(synchronous: boolean): Promise<void> {
  for (let round = 1; round <= Number(values.rounds); round += 1) {
    const options: FailoverOptions = { synchronous, seed: seed + round - 1, version, recovery };
    const { recoveredAfterMs, fates, lostWithoutExcuse, ...judgement } = await failOver(options);
    const { acked } = judgement;
    const lost = judgement.broken['P1 lost'];
    const how = Object.entries(fates).map(([fate, count]) => `${count} ${fate}`);
    say(`round ${round}: back at its pace ${recoveredAfterMs.toFixed(0)} ms after the primary died`);
    say(`round ${round}: of ${acked} acknowledged ${lost.length} lost: ${how.join(', ')}`);
    if (synchronous) report(judgement);
    fail(lostWithoutExcuse.map((story) => `lost without an excuse: ${story}`));
    if (!synchronous && lost.length === 0) fail(['an asynchronous standby lost nothing: this proved nothing']);
  }
}

async function runHung(rounds: number): Promise<void> {
  const cluster = await startCluster({ version, settings: { fsync: 'on', max_connections: '60' } });
  try {
    const { others, gapMs, refused } = await measureHungWorker(cluster, rounds, values.program);
    say(`${others.count} answers to others: p99 ${others.p99Ms.toFixed(0)} ms, longest ${others.maxMs.toFixed(0)} ms`);
    say(`the project itself: ${gapMs.toFixed(0)} ms without an answer at the most; ${refused} refused`);
  } finally {
    await cluster.dispose();
  }
}

/** The faults in a random order, so that the preceding fault differs between rounds. */
function shuffled<T>(items: readonly T[], random: SeededRandom): T[] {
  return items
    .map((item) => ({ item, place: random.fraction() }))
    .toSorted((a, b) => a.place - b.place)
    .map(({ item }) => item);
}

function report(judgement: Judgement): void {
  const { acked, unknown, delivered, repeatedAfterCrash, findings } = judgement;
  say(`${acked} acknowledged, ${unknown} unknown, ${delivered} delivered, ${repeatedAfterCrash} attempts made again`);
  fail(findings);
}

function fail(findings: readonly string[]): void {
  for (const finding of findings) say(`FOUND ${finding}`);
  if (findings.length > 0) process.exitCode = 1;
}

function inWords(who: string, faults: Record<string, Fault>): Record<string, Fault> {
  return Object.fromEntries(Object.entries(faults).map(([what, fault]) => [`${who} ${what}`, fault]));
}

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}
