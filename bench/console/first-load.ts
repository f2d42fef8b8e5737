/** Measures the size and the duration of the first load of the console. */
import type { Browser } from 'playwright-core';
import type { Figure } from '../figure.ts';
import { median } from '../statistics.ts';

/** Loads, each with an empty browser cache. Medians are reported. */
const LOADS = 5;

export async function measureFirstLoad(browser: Browser, url: string): Promise<Figure[]> {
  const loads: Awaited<ReturnType<typeof load>>[] = [];
  for (let nth = 0; nth < LOADS; nth += 1) loads.push(await load(browser, url));
  const of = (name: 'kibibytes' | 'shownMs') => median(loads.map((each) => each[name]));
  return [
    { name: 'first load, over the wire', value: of('kibibytes'), unit: 'KiB' },
    { name: 'first load, until the overview is visible', value: of('shownMs'), unit: 'ms' },
  ];
}

async function load(browser: Browser, url: string): Promise<{ kibibytes: number; shownMs: number }> {
  const context = await browser.newContext();
  const page = await context.newPage();
  const protocol = await context.newCDPSession(page);
  let bytes = 0;
  protocol.on('Network.loadingFinished', ({ encodedDataLength }) => {
    bytes += encodedDataLength;
  });
  await protocol.send('Network.enable');
  const startedAt = performance.now();
  await page.goto(`${url}/console/`, { waitUntil: 'commit' });
  await page.getByRole('heading', { name: 'Overview', level: 1 }).waitFor();
  const shownMs = performance.now() - startedAt;
  await page.waitForLoadState('networkidle');
  await context.close();
  return { kibibytes: bytes / 1024, shownMs };
}
