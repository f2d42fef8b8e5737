/** Was anything lost, or done twice, or beyond a limit? Waits for everything to come to its end, and reads all the books. */
import { parseConfig } from '../../src/config/parse.ts';
import { examineStore } from '../../src/operations/examine.ts';
import { untilNoneIsLeft } from '../crash/enough.ts';
import { readFinalView } from '../crash/final-view.ts';
import { brokenStatements, inWords, offendersIn, type Verdicts } from '../crash/findings.ts';
import { judgeLanes } from '../crash/lane-checks.ts';
import { LANES } from '../crash/lane-load.ts';
import { busyLanes, untilSettled } from '../crash/settling.ts';
import type { World } from './world.ts';

export interface Judgement extends Verdicts {
  /** Deduplication ids that were used. */
  repeats: number;
  /** All that is wrong, in words; empty after a sound run. */
  findings: string[];
}

/** After `world.calmDown()`. */
export async function judge(world: World): Promise<Judgement> {
  const { client, books, repeats, schedules } = world;
  await untilNoneIsLeft(() => countUnfinished(world));
  const unsettled = await untilSettled(books.ledger, client, 0);
  const view = await readFinalView(client);
  const busy = await busyLanes(client);
  const verdict = books.ledger.judge(view);
  const callbacks = books.callbacks.judge(view, books.ledger.tags());
  const lanes = judgeLanes(LANES, books.lanes.events());
  const { databaseUrl, dataDir } = world;
  const examination = await examineStore(parseConfig({ DATABASE_URL: databaseUrl }, ['--data-dir', dataDir]));
  const findings = inWords({
    ...offendersIn({ verdict, callbacks, lanes }),
    'made twice': repeats.madeTwice(books.ledger),
    'not once a time': schedules.findings(),
    unsettled,
    'busy after all': busy,
    doctor: brokenStatements(examination),
  });
  return { verdict, callbacks, lanes, repeats: repeats.count, findings };
}

async function countUnfinished(world: World): Promise<number> {
  const [row] = await world.query('select count(*)::int count from messages');
  return Number(row?.['count']);
}
