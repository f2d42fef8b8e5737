/** What every screen of the console keeps to, in a real browser with real data. */
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Servers } from '../support/servers.ts';
import { populate } from './support/populate.ts';
import { browserObstacle, openBrowser, type SIZES, Visit } from './support/visit.ts';

const SCREENS = [
  '/overview',
  '/messages',
  '/dlq',
  '/queues',
  '/flow-control',
  '/schedules',
  '/url-groups',
  '/send',
  '/settings',
];

const LOOKS: { size: keyof typeof SIZES; theme: 'light' | 'dark' }[] = [
  { size: 'wide', theme: 'light' },
  { size: 'narrow', theme: 'dark' },
];

const obstacle = browserObstacle();

describe.skipIf(obstacle !== undefined)(`the console${obstacle === undefined ? '' : ` (skipped: ${obstacle})`}`, () => {
  const servers = new Servers();
  let browser: Browser;
  let url: string;

  beforeAll(async () => {
    const endpoint = await servers.openEndpoint((request, response) => {
      if (request.url?.startsWith('/slow')) return;
      response.writeHead(request.url?.startsWith('/broken') ? 500 : 200).end('{"answer":true}');
    });
    url = await servers.start(['dev']).url();
    const environment = (await (await fetch(`${url}/console/environment.json`)).json()) as { token: string };
    await populate({ url, token: environment.token, endpoint });
    browser = await openBrowser();
  });

  afterAll(async () => {
    await browser.close();
    await servers.close();
  });

  it.each(SCREENS.flatMap((path) => LOOKS.map((look) => ({ path, ...look }))))(
    '$path at $size, $theme: fits its window, breaks no rule of the browser, and shuts nobody out',
    async ({ path, size, theme }) => {
      const visit = await Visit.open(browser, { url, size, theme });
      await visit.goTo(path);
      await visit.takePicture(`${path.slice(1).replaceAll('/', '-')}-${size}-${theme}`);
      expect(await visit.overflow()).toBe(0);
      expect(await visit.barriers()).toEqual([]);
      expect(visit.faults).toEqual([]);
      await visit.close();
    },
  );
});
