/** Measures the effect of the live view on the page that shows it, and on the server. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Browser, Page } from 'playwright-core';
import { request } from 'undici';
import type { Figure } from '../figure.ts';
import { type LoadTarget, publishAll, publishPaced } from '../load.ts';
import type { Receiver } from '../receiver-process.ts';
import { median, quantile } from '../statistics.ts';
import { AUTHORIZATION } from './store.ts';

export interface LiveOptions {
  /** Duration of each measurement at a steady rate. */
  seconds: number;
  /** Messages of each burst. */
  messages: number;
  rounds: number;
}

const EVENTS_PER_SECOND = 500;
/** Log entries of a message that is delivered at once: created, active, delivered. */
const EVENTS_PER_MESSAGE = 3;
const CLICK_EVERY_MS = 250;
const LIMIT_MS = 60_000;

/** Records the time from a click on a view button until a frame shows it as pressed. */
const RECORD_CLICKS = `
  window.clicksMs = [];
  addEventListener('click', ({ timeStamp, target }) => {
    const button = target.closest('button');
    requestAnimationFrame(function check() {
      if (button.getAttribute('aria-pressed') === 'true') window.clicksMs.push(performance.now() - timeStamp);
      else requestAnimationFrame(check);
    });
  }, true);
`;

export async function measureLive(
  browser: Browser,
  target: LoadTarget,
  receiver: Receiver,
  { seconds, messages, rounds }: LiveOptions,
): Promise<Figure[]> {
  const perSecond = EVENTS_PER_SECOND / EVENTS_PER_MESSAGE;
  const steady = () =>
    delivered(receiver, Math.round(perSecond * seconds), (all) => publishPaced(target, all, perSecond));
  const burst = () => delivered(receiver, messages, (all) => publishAll(target, all));
  await burst(); // warm-up: compilation and new connections
  const rates = { steady: [] as number[], watched: [] as number[], burst: [] as number[], streamed: [] as number[] };
  const clicksMs: number[] = [];
  for (let round = 0; round < rounds; round += 1) {
    rates.steady.push(await steady());
    rates.watched.push(await whileWatched(browser, target.url, clicksMs, steady));
    rates.burst.push(await burst());
    rates.streamed.push(await whileStreamed(target.url, burst));
  }
  return [
    { name: 'click at 500 events/s, p95', value: quantile(clicksMs, 0.95), unit: 'ms' },
    { name: 'click at 500 events/s, max', value: quantile(clicksMs, 1), unit: 'ms' },
    {
      ...{ name: 'delivery rate at 500 events/s, live view open in Chromium', value: median(rates.watched) },
      ...{ unit: 'messages/s', reference: { name: 'without a viewer', value: median(rates.steady) } },
    },
    {
      ...{ name: 'delivery rate of a burst, live stream open', value: median(rates.streamed) },
      ...{ unit: 'messages/s', reference: { name: 'without a reader', value: median(rates.burst) } },
    },
  ];
}

/** Messages per second, from the first publish to the last arrival. */
async function delivered(
  receiver: Receiver,
  messages: number,
  publish: (messages: number) => Promise<{ startedNs: bigint }>,
): Promise<number> {
  await receiver.expect(messages);
  const { startedNs } = await publish(messages);
  if (!(await receiver.complete(LIMIT_MS))) throw new Error('not all messages arrived');
  const { lastArrivalNs } = await receiver.report();
  return messages / (Number(lastArrivalNs - startedNs) / 1e9);
}

/** Runs `work` while a user switches between two views of the growing list. */
async function whileWatched<T>(browser: Browser, url: string, clicksMs: number[], work: () => Promise<T>): Promise<T> {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 } });
  const page = await context.newPage();
  await page.goto(`${url}/console/messages`);
  await page.getByRole('button', { name: 'Live on' }).waitFor();
  await page.evaluate(RECORD_CLICKS);
  let isFinished = false;
  const clicking = clickUntil(page, () => isFinished);
  const result = await work().finally(() => {
    isFinished = true;
  });
  await clicking;
  clicksMs.push(...((await page.evaluate('window.clicksMs')) as number[]));
  await context.close();
  return result;
}

async function clickUntil(page: Page, isFinished: () => boolean): Promise<void> {
  for (let nth = 0; !isFinished(); nth += 1) {
    await page.getByRole('button', { name: nth % 2 === 0 ? 'All changes' : 'Messages', exact: true }).click();
    await sleep(CLICK_EVERY_MS);
  }
}

/** Runs `work` while a client reads the live stream and discards it. */
async function whileStreamed<T>(url: string, work: () => Promise<T>): Promise<T> {
  const ending = new AbortController();
  const { body } = await request(`${url}/v2/waypost/live`, {
    headers: { authorization: AUTHORIZATION },
    signal: ending.signal,
    bodyTimeout: 0,
  });
  body.on('error', () => {}); // aborted below
  body.resume();
  try {
    return await work();
  } finally {
    ending.abort();
  }
}
