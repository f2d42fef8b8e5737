/** Measures how smoothly a long list of messages scrolls. */
import type { Browser, Page } from 'playwright-core';
import type { Figure } from '../figure.ts';

const WHEEL_PX = 400;
const WHEEL_EVENTS_MAX = 200;
/** Rows that one wheel event scrolls past. */
const ROWS_PER_EVENT = 10;

/** Counts the frames of the page's main thread; a headless browser draws up to 60 per second. */
const COUNT_FRAMES = `
  window.frames = 0;
  window.countedFrom = performance.now();
  (function count() {
    window.frames += 1;
    requestAnimationFrame(count);
  })();
`;
const FRAMES_PER_SECOND = '(window.frames - 1) / ((performance.now() - window.countedFrom) / 1000)';

export async function measureScrolling(browser: Browser, url: string, rows: number): Promise<Figure[]> {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 } });
  const page = await context.newPage();
  await page.goto(`${url}/console/messages`);
  await page.getByRole('table', { name: 'Messages' }).hover();
  await loadRows(page, rows);
  await page.evaluate(COUNT_FRAMES);
  const events = Math.min(WHEEL_EVENTS_MAX, Math.floor(rows / ROWS_PER_EVENT)); // at the first row, scrolling ends
  for (let nth = 0; nth < events; nth += 1) await page.mouse.wheel(0, -WHEEL_PX);
  const value = Number(await page.evaluate(FRAMES_PER_SECOND));
  await context.close();
  return [{ name: `scrolling ${rows} messages`, value, unit: 'frames/s' }];
}

/** Scrolls to the end repeatedly, which loads one more page each time. `evaluate` avoids an inline script, which the page's policy rejects. */
function loadRows(page: Page, rows: number): Promise<unknown> {
  return page.evaluate(`new Promise((resolve) => (function next() {
    const table = document.querySelector('[role=table][aria-label=Messages]');
    if (Number(table.getAttribute('aria-rowcount')) > ${rows}) return resolve();
    table.parentElement.scrollTop = table.parentElement.scrollHeight;
    setTimeout(next, 20);
  })())`);
}
