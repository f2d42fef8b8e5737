/** Measures the CPU time that an open console costs an idle server. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Browser } from 'playwright-core';
import { cpuSeconds, type ListeningProcess } from '../child-process.ts';
import type { Figure } from '../figure.ts';

const SCREENS = ['overview', 'messages'];

export interface IdleOptions {
  idleSeconds: number;
  /** Time after which the first screen has loaded. */
  quietMs: number;
}

export async function measureIdle(browser: Browser, server: ListeningProcess, options: IdleOptions): Promise<Figure[]> {
  const reference = { name: 'without a console', value: await cpuPercent(server, options) };
  const figures: Figure[] = [];
  for (const screen of SCREENS) {
    const context = await browser.newContext();
    const page = await context.newPage();
    await page.goto(`${server.url}/console/${screen}`);
    await page.locator('h1').first().waitFor();
    const value = await cpuPercent(server, options);
    await context.close();
    figures.push({
      name: `CPU of an idle server with an open console, ${screen}`,
      value,
      unit: '%',
      reference,
    });
  }
  return figures;
}

/** Percent of one core. */
async function cpuPercent(server: ListeningProcess, { idleSeconds, quietMs }: IdleOptions): Promise<number> {
  await sleep(quietMs);
  const before = cpuSeconds(server.pid);
  await sleep(idleSeconds * 1_000);
  return ((cpuSeconds(server.pid) - before) / idleSeconds) * 100;
}
