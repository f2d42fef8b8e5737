/**
 * Checks that nothing was lost, done twice, or beyond a limit: waits until all work has ended, and compares the result with the
 * ledger.
 */

import { examineStore } from '../../src/admin/examine.ts';
import { parseConfig } from '../../src/config/parse.ts';
import { untilNoneIsLeft } from '../crash/enough.ts';
import { brokenStatements, inWords } from '../crash/findings.ts';
import { judge as judgeLedger, type Judgement as OfLedger } from '../crash/judge.ts';
import type { World } from './world.ts';

export interface Judgement extends OfLedger {
  /** The number of used deduplication ids. */
  repeats: number;
  /** Descriptions of all problems; empty after a sound run. */
  findings: string[];
}

/** Must be called after `world.calmDown()`. */
export async function judge(world: World): Promise<Judgement> {
  const { client, ledger, repeats, schedules, databaseUrl, dataDir } = world;
  await untilNoneIsLeft(() => countUnfinished(world));
  const ofLedger = await judgeLedger(ledger, client);
  const examination = await examineStore(parseConfig({ DATABASE_URL: databaseUrl }, ['--data-dir', dataDir]));
  const findings = inWords({
    ...ofLedger.broken,
    'P2 made twice': repeats.madeTwice(ledger),
    'P16 not once a time': schedules.findings(),
    doctor: brokenStatements(examination),
  });
  return { ...ofLedger, repeats: repeats.count, findings };
}

async function countUnfinished(world: World): Promise<number> {
  const [row] = await world.query('select count(*)::int count from messages');
  return Number(row?.['count']);
}
