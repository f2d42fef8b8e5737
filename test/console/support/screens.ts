/** The screens of the console, and a server with data for them. */
import type { Browser } from 'playwright-core';
import type { RunningServer } from '../../../src/server/server.ts';
import { startDevelopmentServer } from '../../support/development-server.ts';
import { Servers } from '../../support/servers.ts';
import { App } from './app.ts';
import { type PopulatedIds, populate } from './populate.ts';
import { openBrowser, type SIZES, Visit } from './visit.ts';

interface Appearance {
  size: keyof typeof SIZES;
  theme: 'light' | 'dark';
}

/** Each screen with its path and a text that it shows only after its data is loaded. */
export const SCREENS: readonly (readonly [name: string, path: (ids: PopulatedIds) => string, text: string])[] = [
  ['overview', () => '/overview', 'Failures by cause'],
  ['messages', () => '/messages', 'delivered'],
  ['unfinished messages', () => '/messages?view=unfinished', 'paused'],
  ['a delivered message', ({ delivered }) => `/messages/${delivered}`, 'Timeline'],
  ['a failed message', ({ failed }) => `/messages/${failed}`, 'Retry now'],
  ['a waiting message', ({ waiting }) => `/messages/${waiting}`, 'Replay'],
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

/** A populated server, the app that it calls, and a browser. */
export class Scene {
  readonly servers = new Servers();
  browser!: Browser;
  app!: App;
  url!: string;
  token!: string;
  ids!: PopulatedIds;
  #server: RunningServer | undefined;

  static async open(): Promise<Scene> {
    const scene = new Scene();
    scene.app = await App.open(scene.servers);
    scene.#server = await startDevelopmentServer();
    scene.url = scene.#server.url;
    const environment = (await (await fetch(`${scene.url}/console/environment.json`)).json()) as { token: string };
    scene.token = environment.token;
    scene.app.serveWorkflows(scene);
    [scene.ids, scene.browser] = await Promise.all([populate({ ...scene, app: scene.app.url }), openBrowser()]);
    return scene;
  }

  visit(appearance: Partial<Appearance> = {}): Promise<Visit> {
    return Visit.open(this.browser, { url: this.url, ...appearance });
  }

  async close(): Promise<void> {
    await this.browser?.close();
    await this.#server?.stop(0);
    await this.servers.close();
  }
}
