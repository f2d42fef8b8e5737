/** How smoothly does a long list of messages scroll? */
import type { Browser, Page } from 'playwright-core';
import type { Figure } from '../figure.ts';

const WHEEL_PX = 400;
const WHEEL_TURNS_MAX = 200;
/** Passed by a turn. */
const ROWS_A_TURN = 10;

/** Frames that the page's own thread draws, which a browser without a display gives 60 times a second. */
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
  const turns = Math.min(WHEEL_TURNS_MAX, Math.floor(rows / ROWS_A_TURN)); // beyond the first row nothing moves
  for (let turn = 0; turn < turns; turn += 1) await page.mouse.wheel(0, -WHEEL_PX);
  const value = Number(await page.evaluate(FRAMES_PER_SECOND));
  await context.close();
  return [{ name: `${rows} messages, while the wheel turns`, value, unit: 'frames/s' }];
}

/** Goes to the end again and again: each time a page more is read. Evaluates nothing in the page's own name, which its policy refuses. */
function loadRows(page: Page, rows: number): Promise<unknown> {
  return page.evaluate(`new Promise((resolve) => (function onwards() {
    const table = document.querySelector('[role=table][aria-label=Messages]');
    if (Number(table.getAttribute('aria-rowcount')) > ${rows}) return resolve();
    table.parentElement.scrollTop = table.parentElement.scrollHeight;
    setTimeout(onwards, 20);
  })())`);
}
