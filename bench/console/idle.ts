/** What does an open console cost a server that has nothing to do? */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Browser } from 'playwright-core';
import { cpuSeconds, type ListeningProcess } from '../child-process.ts';
import type { Figure } from '../figure.ts';

const SCREENS = ['overview', 'messages'];
/** Until the first screen has been answered. */
const SETTLE_MS = 2_000;

export async function measureIdle(browser: Browser, server: ListeningProcess, seconds: number): Promise<Figure[]> {
  const alone = { name: 'without', value: await cpuPercent(server, seconds) };
  const figures: Figure[] = [];
  for (const screen of SCREENS) {
    const context = await browser.newContext();
    const page = await context.newPage();
    await page.goto(`${server.url}/console/${screen}`);
    await page.locator('h1').first().waitFor();
    const value = await cpuPercent(server, seconds);
    await context.close();
    figures.push({ name: `CPU of an idle server with an open console, ${screen}`, value, unit: '%', beside: alone });
  }
  return figures;
}

/** Of one core. */
async function cpuPercent(server: ListeningProcess, seconds: number): Promise<number> {
  await sleep(SETTLE_MS);
  const before = cpuSeconds(server.pid);
  await sleep(seconds * 1_000);
  return ((cpuSeconds(server.pid) - before) / seconds) * 100;
}
