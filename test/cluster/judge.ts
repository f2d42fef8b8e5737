/** Was anything lost, or done twice, or beyond a limit? Waits for everything to come to its end, and reads all the books. */
import { setTimeout as sleep } from 'node:timers/promises';
import { parseConfig } from '../../src/config/parse.ts';
import { examineStore } from '../../src/examine.ts';
import { readFinalView } from '../crash/final-view.ts';
import { brokenStatements, inWords, offendersIn, type Verdicts } from '../crash/findings.ts';
import { judgeLanes } from '../crash/lane-checks.ts';
import { LANES } from '../crash/lane-load.ts';
import { busyLanes, untilSettled } from '../crash/settling.ts';
import type { World } from './world.ts';

/** Whoever was cut off is declared dead first, and what piled up in a lane goes out one by one: how long it may be the same. */
const STANDSTILL_MS = 30_000;

export interface Judgement extends Verdicts {
  /** Deduplication ids that were used. */
  repeats: number;
  /** All that is wrong, in words; empty after a sound run. */
  findings: string[];
}

/** After `world.calmDown()`. */
export async function judge(world: World): Promise<Judgement> {
  const { client, books, repeats, schedules } = world;
  await untilEmpty(world);
  const unsettled = await untilSettled(books.ledger, client, 0);
  const view = await readFinalView(client);
  const busy = await busyLanes(client);
  const verdict = books.ledger.judge(view);
  const callbacks = books.callbacks.judge(view, books.ledger.tags());
  const lanes = judgeLanes(LANES, books.lanes.events());
  const examination = await examineStore(parseConfig({ DATABASE_URL: world.databaseUrl }, []));
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

/**
 * Waits until there is no unfinished message, or until that stands still. Far cheaper than to read all logs again and again:
 * whoever is left is named by those.
 */
async function untilEmpty(world: World): Promise<void> {
  let fewest = Infinity;
  for (let fewestAtMs = performance.now(); performance.now() < fewestAtMs + STANDSTILL_MS; ) {
    const [row] = await world.query('select count(*)::int count from messages');
    const count = Number(row?.['count']);
    if (count === 0) return;
    if (count < fewest) fewestAtMs = performance.now();
    fewest = Math.min(fewest, count);
    await sleep(100);
  }
}
