/** Measures the speed of the console in Chromium, and its cost for a server with a large store. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openBrowser } from '../../test/console/support/visit.ts';
import type { Figure } from '../figure.ts';
import { flush } from '../flush.ts';
import type { LoadTarget } from '../load.ts';
import { startReceiver } from '../receiver-process.ts';
import { DEVELOPMENT_TOKEN, startWaypost } from '../waypost-process.ts';
import { measureFirstLoad } from './first-load.ts';
import { measureIdle } from './idle.ts';
import { measureLists } from './lists.ts';
import { measureLive } from './live.ts';
import { measureScrolling } from './scrolling.ts';
import { fillStore } from './store.ts';

export const CONSOLE_PARTS = ['lists', 'page', 'live', 'idle'] as const;
export type ConsolePart = (typeof CONSOLE_PARTS)[number];

export interface ConsoleOptions {
  parts: readonly ConsolePart[];
  /** Messages that are stored before the measurements. */
  messages: number;
  runs: number;
  /** Pages that are read per list. */
  pages: number;
  /** At most the number of stored messages. */
  scrolledRows: number;
  /** Duration of each measurement at 500 events per second. */
  liveSeconds: number;
  burstMessages: number;
  /** Rounds of the live view, each measured with the view and without the view; medians are reported. */
  rounds: number;
  idleSeconds: number;
  /** Time after which an opened page is idle. */
  quietMs: number;
  onFigure?: (figure: Figure) => void;
}

export const DEFAULT_CONSOLE: ConsoleOptions = {
  parts: CONSOLE_PARTS,
  ...{ messages: 1_000_000, runs: 100_000, pages: 50, scrolledRows: 10_000 },
  ...{ liveSeconds: 5, burstMessages: 5_000, rounds: 3, idleSeconds: 20, quietMs: 2_000 },
};

export async function measureConsole(options: ConsoleOptions): Promise<Figure[]> {
  const dataDir = mkdtempSync(join(tmpdir(), 'waypost-console-'));
  const server = await startWaypost({ dataDir });
  const receiver = await startReceiver('ordinary');
  const browser = await openBrowser();
  const { url } = server;
  const target: LoadTarget = { peers: 'ordinary', url, token: DEVELOPMENT_TOKEN, destination: `${receiver.url}/` };
  const figures: Figure[] = [];
  const note = (more: Figure[]) => {
    figures.push(...more);
    for (const figure of more) options.onFigure?.(figure);
  };
  try {
    await fillStore(server, options);
    flush(dataDir);
    const { parts, liveSeconds: seconds, burstMessages: messages, rounds } = options;
    if (parts.includes('lists')) await measureLists(url, options.pages, note);
    if (parts.includes('page')) {
      note(await measureFirstLoad(browser, url));
      note(await measureScrolling(browser, url, Math.min(options.scrolledRows, options.messages)));
    }
    if (parts.includes('live')) note(await measureLive(browser, target, receiver, { seconds, messages, rounds }));
    if (parts.includes('idle')) note(await measureIdle(browser, server, options));
    return figures;
  } finally {
    await browser.close();
    await server.end('SIGTERM');
    await receiver.end();
    rmSync(dataDir, { recursive: true, force: true });
  }
}
