/** Workflow runs of all projects: the app that serves them, in its own process, and what was requested. */
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type ListeningProcess, startListening } from '../../../bench/child-process.ts';
import type { Workers } from '../../cluster/workers.ts';
import type { Client } from '../../crash/client.ts';
import { brokenInRuns, inWords } from '../../crash/findings.ts';
import { Balancer } from '../../crash/runs/balancer.ts';
import { judgeCheckpoints } from '../../crash/runs/checkpoint-checks.ts';
import { type Diary, openDiary, readDiary } from '../../crash/runs/diary.ts';
import { judgeJournals } from '../../crash/runs/journal-checks.ts';
import { RunBook } from '../../crash/runs/run-book.ts';
import { judgeRuns } from '../../crash/runs/run-checks.ts';
import { RunLoad } from '../../crash/runs/run-load.ts';
import { readRunView } from '../../crash/runs/run-view.ts';
import { openThirdParty, type ThirdParty } from '../../crash/runs/third-party.ts';
import type { SeededRandom } from '../../support/seeded-random.ts';

const APP = fileURLToPath(new URL('../../crash/runs/app-process.ts', import.meta.url));
/** Of each project. */
const PACE = { workers: 1, pauseMs: { min: 3_000, max: 12_000 } };

interface Parts {
  balancer: Balancer;
  app: ListeningProcess;
  third: ThirdParty;
  diary: Diary;
  diaryPath: string;
}

export class Runs {
  readonly #parts: Parts;
  readonly #book = new RunBook();

  private constructor(parts: Parts) {
    this.#parts = parts;
  }

  /** `tokens`: of each project. The diary is kept in the folder. */
  static async open(workers: Pick<Workers, 'up'>, tokens: readonly string[], folder: string): Promise<Runs> {
    const diaryPath = join(folder, 'diary.jsonl');
    const diary = openDiary(diaryPath);
    const balancer = await Balancer.open(() => workers.up().map(({ url }) => url));
    const env = { QSTASH_URL: balancer.url };
    const app = await startListening([APP, '0', diaryPath, 'both', ...tokens], { env });
    return new Runs({ balancer, app, third: await openThirdParty(diary), diary, diaryPath });
  }

  /** `number`: of the project, by its token. */
  loadOf(number: number, token: string, random: SeededRandom): RunLoad {
    const { balancer, app, third } = this.#parts;
    const urls = { serverUrl: balancer.url, appUrl: `${app.url}/${number}`, thirdUrl: third.url };
    return new RunLoad({ book: this.#book, random, ...urls, token, pace: PACE });
  }

  /** What is wrong, and how many have succeeded. `clients`: of each project. */
  async judge(clients: readonly Client[]): Promise<{ succeeded: number; findings: string[] }> {
    const views = await Promise.all(clients.map(readRunView));
    const view = { runs: views.flatMap(({ runs }) => runs), dead: views.flatMap(({ dead }) => dead) };
    const lines = readDiary(this.#parts.diaryPath);
    const journals = judgeJournals(lines);
    const runs = judgeRuns({ book: this.#book, view, lines, journals });
    const checkpoints = judgeCheckpoints(lines, view.runs);
    const findings = inWords(brokenInRuns({ runs, journals, checkpoints }));
    return { succeeded: runs.succeeded, findings: findings.map((finding) => `runs: ${finding}`) };
  }

  async close(): Promise<void> {
    const { balancer, app, third, diary } = this.#parts;
    await app.end('SIGKILL');
    await third.close();
    balancer.close();
    diary.close();
  }
}
