/**
 * Kills the real server and the user's app repeatedly at random moments, while runs of every kind are in progress. At the end,
 * each run must have reached the end of its program. For more: `node test/crash/runs/run-kill-loop.ts --kills 100 --seed 7
 * --library own`, `--postgres`.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { SeededRandom } from '../../support/seeded-random.ts';
import { Client } from '../client.ts';
import { more, type Need, underLoad, untilEnough } from '../enough.ts';
import { brokenInRuns, brokenStatements, inWords } from '../findings.ts';
import { type CheckpointVerdict, judgeCheckpoints } from './checkpoint-checks.ts';
import { openDiary, ProgressCount, readDiary } from './diary.ts';
import { EmbeddedServer } from './embedded-server.ts';
import { type JournalVerdict, judgeJournals } from './journal-checks.ts';
import { type LibraryChoice, libraryChoice } from './libraries.ts';
import { PostgresServers } from './postgres-servers.ts';
import { Processes, type Victim } from './processes.ts';
import { RunBook } from './run-book.ts';
import { judgeRuns, type RunVerdict } from './run-checks.ts';
import { ENDING_PROGRAMS, RunLoad } from './run-load.ts';
import { readRunView } from './run-view.ts';
import type { Servers } from './servers.ts';
import { openThirdParty } from './third-party.ts';

export interface RunKillLoopOptions {
  /** The number of kills under load before all processes may finish undisturbed. */
  kills: number;
  seed: number;
  /** The library that serves the app's workflows. Default: both, alternating between deliveries. */
  library?: LibraryChoice;
  /** Three workers on a PostgreSQL instead of one server. */
  postgres?: boolean;
  /** More settings of the one server, as flags. */
  flags?: string[];
  /** The folder of the diary and of the server's data, for examining findings. Default: a temporary folder. */
  folder?: string;
}

export interface RunKillLoopReport {
  seed: number;
  killed: { server: number; app: number };
  runs: RunVerdict;
  journals: JournalVerdict;
  checkpoints: CheckpointVerdict;
  /** A description of the unfinished work after the last restart. */
  unsettled: string[];
  /** The findings of `waypost doctor`, after each kill of the server and at the end. */
  doctor: string[];
  /** The result of `PRAGMA integrity_check` for the file at the end. */
  integrity: string[];
}

/**
 * The number of deliveries, and of steps within deliveries, between two kills. With less work, kills hit only the start;
 * more work finds nothing new.
 */
const LIFE = { min: 0, max: 150 };
/** The targets of the kills, in rotation. */
const VICTIMS: readonly Victim[] = ['server', 'app', 'server', 'both'];

export async function runRunKillLoop(options: RunKillLoopOptions): Promise<RunKillLoopReport> {
  const { kills, seed, library = 'both', postgres = false, flags = [] } = options;
  const folder = options.folder ?? newFolder();
  const diaryPath = join(folder, 'diary.jsonl');
  const diary = openDiary(diaryPath);
  const counted = new ProgressCount(diaryPath);
  const progress = () => counted.soFar();
  // The moments of the kills depend only on the seed, not on the speed of the load.
  const random = new SeededRandom(seed);
  const servers = postgres
    ? await PostgresServers.prepare(folder, random.fork())
    : await EmbeddedServer.prepare(folder, flags);
  const processes = await Processes.prepare({ servers, library, diary, diaryPath });
  const { appUrl } = processes;
  const third = await openThirdParty(diary);
  const book = new RunBook();
  const terms = { serverUrl: servers.url, appUrl, thirdUrl: third.url };
  const load = new RunLoad({ book, random: new SeededRandom(seed + 1), ...terms });
  const client = new Client(servers.url);
  const run = (signal: AbortSignal) => load.run(client, signal);
  try {
    const doctor: string[] = [];
    await processes.start();
    for (let kill = 0; kill < kills; kill += 1) {
      const victim = VICTIMS[kill % VICTIMS.length] ?? 'both';
      await underLoad(run, async (assertSound) => {
        await untilEnough([more('deliveries and steps', progress, random.int(LIFE.min, LIFE.max))], assertSound);
        await processes.kill(victim);
        // While other workers run, triggers continue, and deliveries fail to connect if the app is dead.
        if (!servers.areDown) await processes.start();
      });
      if (!servers.areDown) continue;
      for (const finding of await findingsOfDoctor(servers)) doctor.push(`after kill ${kill + 1}: ${finding}`);
      await processes.start();
    }
    const enough: Need[] = [
      { what: 'deliveries and steps', count: progress, atLeast: kills * LIFE.max },
      ...ENDING_PROGRAMS.map((name) => ({ what: name, count: () => (book.isLeftAlone(name) ? 1 : 0), atLeast: 1 })),
      { what: 'cancelled runs', count: () => book.cancelled(), atLeast: 1 },
    ];
    await underLoad(run, (assertSound) => untilEnough(enough, assertSound));
    // Nothing is triggered from here on: the work that the last start finds must end without any request that wakes the
    // server.
    await processes.kill('both');
    await processes.start();
    await load.calmDown(client);
    const unsettled = await untilSettled(servers);
    const view = await readRunView(client);
    await servers.end();
    doctor.push(...(await findingsOfDoctor(servers)));
    const lines = readDiary(diaryPath);
    const journals = judgeJournals(lines);
    return {
      seed,
      killed: processes.killed,
      runs: judgeRuns({ book, view, lines, journals }),
      // With several workers the sender of an attempt is unknown, and so is whether a crash explains a repetition.
      journals: postgres ? { ...journals, unexplained: [] } : journals,
      checkpoints: judgeCheckpoints(lines, view.runs),
      unsettled,
      doctor,
      integrity: servers.integrity(),
    };
  } finally {
    await client.close();
    await processes.close();
    await servers.close();
    await third.close();
    diary.close();
    counted.close();
    if (options.folder === undefined) rmSync(folder, { recursive: true, force: true });
  }
}

function newFolder(): string {
  return mkdtempSync(join(tmpdir(), 'waypost-run-crash-'));
}

/**
 * Waits until the store has no active run and no message. If that takes too long, resolves to a description of their
 * number.
 */
async function untilSettled(servers: Servers): Promise<string[]> {
  await servers.untilEmpty();
  const { activeRuns = 0, unfinished = 0 } = (await servers.examine())?.census ?? {};
  return activeRuns + unfinished === 0 ? [] : [`${activeRuns} runs active, ${unfinished} messages unfinished`];
}

async function findingsOfDoctor(servers: Servers): Promise<string[]> {
  const examination = await servers.examine();
  return examination ? brokenStatements(examination) : [];
}

/** Descriptions of all problems; empty after a sound run. */
export function findingsOf(report: RunKillLoopReport): string[] {
  const { journals, checkpoints } = report;
  return inWords({
    ...brokenInRuns(report),
    'executed although kept': checkpoints.executedInVain,
    'executed after it was told to stop': checkpoints.executedAfterStop,
    repeated: journals.unexplained,
    unsettled: report.unsettled,
    doctor: report.doctor,
    integrity: report.integrity.filter((line) => line !== 'ok'),
  });
}

if (import.meta.main) {
  const { values } = parseArgs({
    options: {
      kills: { type: 'string', default: '20' },
      seed: { type: 'string', default: String(process.pid) },
      library: { type: 'string', default: 'both' },
      postgres: { type: 'boolean', default: false },
    },
  });
  const folder = newFolder();
  const report = await runRunKillLoop({
    folder,
    kills: Number(values.kills),
    seed: Number(values.seed),
    library: libraryChoice(values.library),
    postgres: values.postgres,
  });
  const findings = findingsOf(report);
  const { seed, killed, runs, journals, checkpoints } = report;
  const { acked, succeeded, failed, cancelled, invoked, woken } = runs;
  const { deliveries, repeatedAfterCrash } = journals;
  const { kept, stopped, executedAgain, takeovers } = checkpoints;
  const ends = { acked, succeeded, failed, cancelled, invoked, woken };
  const counts = { ...ends, deliveries, repeatedAfterCrash, kept, stopped, executedAgain, takeovers };
  process.stdout.write(`${JSON.stringify({ seed, killed, ...counts, findings }, null, 2)}\n`);
  if (findings.length === 0) {
    rmSync(folder, { recursive: true, force: true });
  } else {
    process.stdout.write(`the diary of this run is in ${folder}\n`);
    process.exitCode = 1;
  }
}
