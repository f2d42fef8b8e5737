/** The complete HTTP interface with a real engine and an in-memory store; only the endpoints are simulated. */

import { text as textOf } from 'node:stream/consumers';
import { Value } from '@sinclair/typebox/value';
import inject, { type InjectOptions } from 'light-my-request';
import { expect } from 'vitest';
import { StoredTokens } from '../../../src/accounts/project-tokens.ts';
import type { Accounts, Caller, SigningKeys } from '../../../src/api/accounts.ts';
import { type ApiOptions, createApi } from '../../../src/api/app.ts';
import { Browsers } from '../../../src/api/edge/browsers.ts';
import type { Listener } from '../../../src/api/edge/listener.ts';
import type { ApiLimits } from '../../../src/api/limits.ts';
import { Console } from '../../../src/api/pages/console.ts';
import { prepareContent } from '../../../src/api/pages/prepared-content.ts';
import { JsonThread } from '../../../src/api/requests/json-thread.ts';
import type { Route } from '../../../src/api/route.ts';
import { createRoutes } from '../../../src/api/routes.ts';
import { ErrorSchema } from '../../../src/api/schemas.ts';
import type { Engine } from '../../../src/engine/commands.ts';
import { createEngine } from '../../../src/engine/create.ts';
import type { Page, PageRequest } from '../../../src/engine/lists/page.ts';
import type { Millis, Outcome, ProjectId } from '../../../src/engine/model.ts';
import type { Clock, Delivery, EventLog, Randomness } from '../../../src/engine/ports.ts';
import type { EngineSettings } from '../../../src/engine/settings.ts';
import { newHeaderMap } from '../../../src/protocol/headers.ts';
import { hashToken, userIdOfToken } from '../../../src/protocol/token.ts';
import { openInlineSqliteStore } from '../../../src/store/drivers/sqlite/open.ts';
import type { Store } from '../../../src/store/store.ts';
import { createSystemRandomness, endOfTurn, systemClock } from '../../../src/system/system.ts';
import { ENGINE_SETTINGS } from '../../support/engine-settings.ts';

/** Replaces the built page of the API documentation. */
const PAGE = prepareContent('text/html; charset=utf-8', Buffer.from('<!doctype html>'));

export const TOKEN = 'eyJVc2VySUQiOiJkZWZhdWx0VXNlciIsIlBhc3N3b3JkIjoiZGVmYXVsdFBhc3N3b3JkIn0=';
export const READ_ONLY_TOKEN = 'read+only/token==';
export const PUBLISH_ONLY_TOKEN = 'publish-only-token';
export const OTHER_TOKEN = 'token-of-another-project';

export const LIMITS: ApiLimits = {
  messageBytesMax: 100_000,
  batchBytesMax: 1_000_000,
  batchItemsMax: 100,
  requestMemoryBytesMax: 2_000_000,
  headerBytesMax: 64 * 1024,
  connectionsMax: 500,
  headersTimeoutMs: 10_000,
  requestTimeoutMs: 60_000,
  keepAliveTimeoutMs: 75_000,
  requestsPerSecondMax: 0,
  queuesMax: 5,
  queueParallelismMax: 10,
  parallelismMax: 0,
  urlGroupsMax: 5,
  urlGroupEndpointsMax: 4,
  schedulesMax: 5,
};

/** For tests that end turns of the event loop themselves: real time limits must not expire on a slow machine. */
export const PATIENT = { headersTimeoutMs: 3_600_000, requestTimeoutMs: 3_600_000, keepAliveTimeoutMs: 3_600_000 };

const DAY_MS = 86_400_000;

const SETTINGS: EngineSettings = {
  ...ENGINE_SETTINGS,
  inFlightMax: 100,
  inFlightPerOriginMax: 50,
  inFlightBytesMax: 10_000_000,
  logRetentionMs: DAY_MS,
  dlqRetentionMs: DAY_MS,
  retentionIntervalMs: DAY_MS,
};

export interface LogLine {
  event: string;
  fields: Record<string, unknown>;
}

export interface World {
  app: Listener;
  readonly routes: Route[];
  engine: Engine;
  /** The log of the server. */
  logLines: LogLine[];
  /** Sends a request with the full token, unless the request has an `authorization` header. */
  ask(request: InjectOptions): Promise<Reply>;
  /** Publishes a message, and returns its id. */
  publish(url: string, headers?: Record<string, string>, body?: string | Buffer): Promise<string>;
  /** Publishes a message that dies at once, and returns its DLQ id. */
  bury(url: string, headers?: Record<string, string>): Promise<string>;
  /** The number of log entries, dead messages, queues and flow-control keys in the first project. */
  countStored(): Promise<number>;
  /** Listens on a free port of 127.0.0.1. */
  listen(): Promise<{ port: number; url: string }>;
  close(): Promise<void>;
}

export interface Reply {
  status: number;
  headers: Record<string, string | string[] | number | undefined>;
  text: string;
  /** Parsed body; `undefined` if the body is empty or not JSON. */
  json: Json;
}

// biome-ignore lint/suspicious/noExplicitAny: tests read responses whose shape they assert
export type Json = any;

/** Endpoints by host: `ok` responds with 200, `fail` with 500, all others wait until they are interrupted. */
const ENDPOINTS: Delivery = {
  attempt({ message }, signal) {
    const host = new URL(message.url).hostname;
    if (host.startsWith('ok.')) return Promise.resolve(respondedWith(200, 'fine'));
    if (host.startsWith('fail.')) return Promise.resolve(respondedWith(500, 'broken'));
    return new Promise((resolve) => {
      const interrupt = (): void => resolve({ kind: 'interrupted' });
      if (signal.aborted) interrupt();
      signal.addEventListener('abort', interrupt);
    });
  },
  close: () => Promise.resolve(),
};

function respondedWith(status: number, body: string): Outcome {
  const header = newHeaderMap();
  header['Content-Type'] = ['text/plain'];
  return { kind: 'responded', status, header, body: Buffer.from(body) };
}

/** The dependencies of a world. Defaults: the real clock and `ENDPOINTS`. A test must close its own dependencies. */
interface Ground {
  clock: Clock;
  randomness: Randomness;
  delivery: Delivery;
  settings: Partial<EngineSettings>;
  /** Wraps the engine that the HTTP interface uses. */
  between: (engine: Engine) => Engine;
  /** 0: no limit. */
  messagesPerDayMax: number;
}

export async function openWorld(changes: Partial<ApiOptions> = {}, ground: Partial<Ground> = {}): Promise<World> {
  const { clock = systemClock, randomness = createSystemRandomness(), delivery = ENDPOINTS } = ground;
  const { messagesPerDayMax = 0 } = ground;
  const limits = changes.limits ?? LIMITS;
  const logLines: LogLine[] = [];
  const log = recordingLog(logLines);
  const store = await openInlineSqliteStore({
    path: ':memory:',
    limits: {
      queuesMax: limits.queuesMax,
      parallelismMax: limits.parallelismMax,
      messagesPerDayMax,
      journalBytesMax: 0,
    },
    onFatal: (error) => {
      throw error;
    },
  });
  const sealed = { current: 'sealed', next: 'sealed' };
  const { projectId: first } = await store.projects.ensureProject({
    name: 'first',
    signingKeys: sealed,
    nowMs: clock.nowMs(),
  });
  const { projectId: second } = await store.projects.ensureProject({
    name: 'second',
    signingKeys: sealed,
    nowMs: clock.nowMs(),
  });
  const deps = { store, clock, randomness, delivery, log, worker: 'test' };
  const accounts = new MemoryAccounts(first, second, store);
  await accounts.save(clock.nowMs());
  const randomBytes = (count: number): Uint8Array => randomness.bytes(count);
  const { between = (direct: Engine) => direct } = ground;
  const engine = between(await createEngine({ ...deps, settings: { ...SETTINGS, ...ground.settings } }));
  const options: ApiOptions = {
    engine,
    accounts,
    tokens: new StoredTokens(store, accounts, clock, log, randomBytes),
    clock,
    log,
    checkDestination: () => (url) =>
      url.hostname === '127.0.0.1' ? 'endpoint resolves to a loopback address: 127.0.0.1' : undefined,
    quotas: { retriesDefault: 3, retriesMax: 999, delayMsMax: 365 * DAY_MS, timeoutMsMax: 7_200_000 },
    limits,
    proxyHeaders: ['x-forwarded-*', 'x-real-ip', 'forwarded', 'via'],
    plainHeaders: { cloudEvents: false, baggage: false },
    trustedProxies: [],
    console: { version: '1.2.3', readFiles: async () => new Map([['docs.html', await PAGE]]) },
    browsers: new Browsers({ origins: [], hosts: 'any' }),
    logsPageDefault: 1000,
    isReady: () => true,
    endOfTurn,
    // Needed for the routes of the virtual clock, which test/testing/over-http.test.ts tests in detail.
    virtualTime: { nowMs: () => clock.nowMs(), isIdle: true, advance: async () => {}, runUntilIdle: async () => true },
    ...changes,
  };
  const app = createApi(options);
  const world: World = {
    app,
    get routes() {
      return createRoutes({
        ...options,
        json: new JsonThread(clock),
        closing: new AbortController().signal,
        console: new Console(options.console),
      });
    },
    engine,
    logLines,
    ask: (request) => ask(app, request),
    publish: (url, headers, body) => publish(app, url, headers, body),
    bury: async (url, headers) => {
      const messageId = await publish(app, url, { ...headers, 'upstash-retries': '0' });
      return deadIdOf(app, messageId);
    },
    countStored: () => countStored(engine, first),
    listen: async () => {
      const { port } = await app.listen({ host: '127.0.0.1', port: 0 });
      return { port, url: `http://127.0.0.1:${port}` };
    },
    close: async () => {
      app.server.closeAllConnections();
      await app.close();
      await engine.drain(0);
      await store.close();
    },
  };
  return world;
}

async function ask(app: Listener, request: InjectOptions): Promise<Reply> {
  const headers = { authorization: `Bearer ${TOKEN}`, ...request.headers };
  const options = { ...request, headers, payloadAsStream: true };
  const response = await inject((req, res) => app.server.emit('request', req, res), options);
  const { statusCode: status } = response;
  // An endless response is abandoned before its first data. Tests of the data use a connection.
  if (isStream(response.headers)) response.raw.res.destroy();
  const text = isStream(response.headers) ? '' : await textOf(response.stream());
  const reply: Reply = {
    status,
    headers: response.headers,
    text,
    json: text === '' || isText(response.headers) ? undefined : JSON.parse(text),
  };
  expectWellFormed(reply, request.method);
  return reply;
}

/** Checks the rules for every response (contract M 1.3). */
function expectWellFormed({ status, headers, text, json }: Reply, method: InjectOptions['method']): void {
  expect(status < 300 || status > 399, `a redirect: ${status}`).toBe(true);
  if (text !== '' && !isText(headers)) expect(headers['content-type']).toBe('application/json');
  if (status >= 400 && method !== 'HEAD')
    expect(Value.Check(ErrorSchema, json), `not an error object: ${text}`).toBe(true);
}

function isStream(headers: Reply['headers']): boolean {
  return headers['content-type'] === 'text/event-stream';
}

/** Whether the response is a page or metrics for Prometheus. */
function isText(headers: Reply['headers']): boolean {
  return ['text/html; charset=utf-8', 'text/plain; version=0.0.4; charset=utf-8'].includes(
    String(headers['content-type']),
  );
}

async function publish(
  app: Listener,
  url: string,
  headers: Record<string, string> = {},
  payload: string | Buffer = '',
): Promise<string> {
  const reply = await ask(app, { method: 'POST', url: `/v2/publish/${url}`, headers, payload });
  expect(reply.status, reply.text).toBe(200);
  return reply.json.messageId;
}

/** Waits until the message is dead; the simulated endpoints respond within a few turns of the event loop. */
async function deadIdOf(app: Listener, messageId: string): Promise<string> {
  for (let turn = 0; turn < 1_000; turn += 1) {
    const { json } = await ask(app, { method: 'GET', url: `/v2/dlq?messageId=${messageId}` });
    const dlqId: string | undefined = json.messages[0]?.dlqId;
    if (dlqId !== undefined) return dlqId;
  }
  throw new Error(`message ${messageId} did not die`);
}

async function countStored(engine: Engine, projectId: ProjectId): Promise<number> {
  const logs = await countAll((page) => engine.storeOf(projectId).logs.listLogs({ filter: {}, page }));
  const dead = await countAll((page) => engine.storeOf(projectId).dead.listDead({ filter: {}, page }));
  const queues = await engine.storeOf(projectId).queues.listQueues({});
  const keys = await engine.storeOf(projectId).keys.listKeys({ search: '', after: '', count: 1_000 });
  return logs + dead + queues.length + keys.length;
}

async function countAll(list: (page: PageRequest) => Promise<Page<unknown>>): Promise<number> {
  const all = { count: 1_000, order: 'latestFirst' } as const;
  let { items, cursor } = await list(all);
  let count = items.length;
  while (cursor !== undefined) {
    ({ items, cursor } = await list({ ...all, cursor }));
    count += items.length;
  }
  return count;
}

class MemoryAccounts implements Accounts {
  readonly #store: Store;
  readonly #callers: Map<string, Caller>;
  readonly #projects: ReadonlyMap<string, ProjectId>;
  readonly #keys = new Map<ProjectId, SigningKeys>();
  #rotations = 0;

  constructor(first: ProjectId, second: ProjectId, store: Store) {
    this.#store = store;
    this.#callers = new Map<string, Caller>([
      [hashToken(TOKEN), { projectId: first, scope: 'full' }],
      [hashToken(READ_ONLY_TOKEN), { projectId: first, scope: 'read-only' }],
      [hashToken(PUBLISH_ONLY_TOKEN), { projectId: first, scope: 'publish-only', tokenName: 'the shop' }],
      [hashToken(OTHER_TOKEN), { projectId: second, scope: 'full' }],
    ]);
    this.#projects = new Map([
      ['first', first],
      // Libraries read this user id from the token, and put it into the URLs of webhooks.
      [userIdOfToken(TOKEN) ?? '', first],
      ['second', second],
    ]);
    for (const projectId of [first, second]) this.#keys.set(projectId, { current: 'sig_1', next: 'sig_2' });
  }

  /** Saves the tokens in the store. */
  async save(nowMs: Millis): Promise<void> {
    for (const [tokenHash, { tokenName: name, ...caller }] of this.#callers) {
      await this.#store.projects.addToken({ tokenHash, ...caller, ...(name && { name }), createdAtMs: nowMs });
    }
  }

  async refresh(): Promise<void> {
    for (const { tokenHash, projectId, scope, name } of await this.#store.projects.listTokens()) {
      this.#callers.set(tokenHash, { projectId, scope, ...(name && { tokenName: name }) });
    }
  }

  forget(tokenHash: string): void {
    this.#callers.delete(tokenHash);
  }

  async notifyOthers(): Promise<void> {}

  get sharedVersion(): undefined {
    return undefined;
  }

  authenticate(tokenHash: string): Caller | undefined {
    return this.#callers.get(tokenHash);
  }

  projectByName(name: string): ProjectId | undefined {
    return this.#projects.get(name);
  }

  projectName(projectId: ProjectId): string {
    const [name = ''] = [...this.#projects].find(([, id]) => id === projectId) ?? [];
    return name;
  }

  cachedSigningKeys(projectId: ProjectId): readonly string[] {
    const keys = this.#keys.get(projectId);
    return keys ? [keys.current, keys.next] : [];
  }

  signingKeys(projectId: ProjectId): Promise<SigningKeys> {
    const keys = this.#keys.get(projectId);
    return keys ? Promise.resolve(keys) : Promise.reject(new Error('no such project'));
  }

  async rotate(projectId: ProjectId): Promise<SigningKeys> {
    const { next } = await this.signingKeys(projectId);
    this.#rotations += 1;
    const keys = { current: next, next: `sig_new${this.#rotations}` };
    this.#keys.set(projectId, keys);
    return keys;
  }
}

function recordingLog(lines: LogLine[]): EventLog {
  const record = (event: string, fields: Record<string, unknown> = {}): void => {
    lines.push({ event, fields });
  };
  return { debug: record, info: record, warn: record, error: record };
}
