/** Which screens does the console have, and what does each show of what `populate` made? */
import type { Browser } from 'playwright-core';
import type { RunningServer } from '../../../src/server/server.ts';
import { startInProcess } from '../../support/server-in-process.ts';
import { Servers } from '../../support/servers.ts';
import { App } from './app.ts';
import { type Made, populate } from './populate.ts';
import { openBrowser, type SIZES, Visit } from './visit.ts';

export interface Look {
  size: keyof typeof SIZES;
  theme: 'light' | 'dark';
}

/** Where a screen is, by the ids of what it shows, and a text of it that is there only with its data. */
export const SCREENS: readonly (readonly [name: string, path: (made: Made) => string, text: string])[] = [
  ['overview', () => '/overview', 'Failures by cause'],
  ['messages', () => '/messages', 'delivered'],
  ['unfinished messages', () => '/messages?view=unfinished', 'paused'],
  ['a delivered message', ({ delivered }) => `/messages/${delivered}`, 'Timeline'],
  ['a failed message', ({ failed }) => `/messages/${failed}`, 'Retry now'],
  ['a waiting message', ({ waiting }) => `/messages/${waiting}`, 'This message cannot be published again'],
  ['runs', () => '/runs', 'failed'],
  ['failed runs', () => '/runs?view=failed', 'the bank is closed'],
  ['waits for events', () => '/runs?view=waiting', 'paid-42'],
  ['a run', ({ run }) => `/runs/${run}`, 'give time to reconsider'],
  ['a failed run', ({ failedRun }) => `/runs/${failedRun}`, 'Resume'],
  ['DLQ', () => '/dlq', '500'],
  ['queues', () => '/queues', 'invoices'],
  ['flow control', () => '/flow-control', 'crm'],
  ['schedules', () => '/schedules', 'morning-report'],
  ['URL groups', () => '/url-groups', 'subscribers'],
  ['send', () => '/send', 'TypeScript (official client)'],
  ['settings', () => '/settings', 'Signing keys'],
];

/** A server full of life, and a browser before it. */
export class Scene {
  readonly servers = new Servers();
  browser!: Browser;
  app!: App;
  url!: string;
  token!: string;
  made!: Made;
  #server: RunningServer | undefined;

  static async open(): Promise<Scene> {
    const scene = new Scene();
    scene.app = await App.open(scene.servers);
    scene.#server = await startInProcess();
    scene.url = scene.#server.url;
    const environment = (await (await fetch(`${scene.url}/console/environment.json`)).json()) as { token: string };
    scene.token = environment.token;
    scene.app.serveWorkflows(scene);
    [scene.made, scene.browser] = await Promise.all([populate({ ...scene, app: scene.app.url }), openBrowser()]);
    return scene;
  }

  visit(look: Partial<Look> = {}): Promise<Visit> {
    return Visit.open(this.browser, { url: this.url, ...look });
  }

  async close(): Promise<void> {
    await this.browser?.close();
    await this.#server?.stop(0);
    await this.servers.close();
  }
}
