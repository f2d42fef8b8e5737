/** The subject of statements: a complete server on its own port, an endpoint, and a clock that the test advances. */
import http from 'node:http';
import { fileURLToPath } from 'node:url';
import { Value } from '@sinclair/typebox/value';
import { expect } from 'vitest';
import type { Credentials } from '../../../src/accounts/open-accounts.ts';
import { ErrorSchema } from '../../../src/api/schemas.ts';
import { DEVELOPMENT_ACCOUNTS } from '../../../src/config/development.ts';
import { parseConfig } from '../../../src/config/parse.ts';
import type { EventLog } from '../../../src/engine/ports.ts';
import { type RunningServer, startServer } from '../../../src/server/server.ts';
import { VirtualClock } from '../../../src/testing/virtual-clock.ts';
import { eventually } from '../../support/eventually.ts';
import { type BorrowedDatabase, borrowDatabase } from '../../support/postgres/shared.ts';
import { Endpoint } from './endpoint.ts';
import { startTwoWorkers } from './two-workers.ts';

// As bin/waypost.js does: the threads of a hundred servers would otherwise strip the same sources of their types.
process.env['NODE_COMPILE_CACHE'] ??= fileURLToPath(new URL('../../../node_modules/.cache/waypost', import.meta.url));

// biome-ignore lint/suspicious/noExplicitAny: statements read responses whose shape they assert
export type Json = any;

export interface ApiResponse {
  status: number;
  headers: http.IncomingHttpHeaders;
  text: string;
  /** Parsed body; `undefined` without one. */
  json: Json;
}

export interface Question {
  headers?: Record<string, string | string[]>;
  body?: string | Buffer;
  /** Sent as `Authorization: Bearer`, or not at all if `null`. Default: the token of the first account. */
  token?: string | null;
  /** The number of the worker that receives the request. Default: 0. */
  worker?: number;
}

export interface SubjectOptions {
  /** Settings, as flags of `waypost dev`. */
  flags?: readonly string[];
  /** Default: in memory. */
  dataDir?: string;
  /** Default: the embedded database. `postgres`: an empty database on the PostgreSQL of the test run. */
  database?: 'embedded' | 'postgres';
  /** Default: 1. */
  workers?: 1 | 2;
  /** Whether a database in memory runs in the main thread. In production a database has its own thread. */
  isStoreInline?: boolean;
  credentials?: Credentials;
  token?: string;
}

/** The token of a second account, which must never see any data of the first account. */
export const OTHER_TOKEN = DEVELOPMENT_ACCOUNTS[1]?.token ?? '';

const FINISHED: ReadonlySet<string> = new Set(['DELIVERED', 'FAILED', 'CANCELED']);

const ENCRYPTION_KEY = Buffer.alloc(32, 7).toString('base64');

export class Subject {
  readonly clock = new VirtualClock();
  readonly endpoint = new Endpoint(this.clock);
  readonly token: string;
  /** The warnings in the log of the server. */
  readonly warnings: { event: string; option?: unknown }[] = [];
  readonly #agent = new http.Agent({ keepAlive: true });
  readonly #options: SubjectOptions;
  #server: Pick<RunningServer, 'stop'> | undefined;
  /** The URL of each worker. */
  #urls: readonly string[] = [];
  #database: BorrowedDatabase | undefined;
  #closed: Promise<void> | undefined;

  private constructor(options: SubjectOptions) {
    this.#options = options;
    this.token = options.token ?? DEVELOPMENT_ACCOUNTS[0].token;
  }

  static async open(options: SubjectOptions = {}): Promise<Subject> {
    const subject = new Subject(options);
    await subject.endpoint.open();
    await subject.#start();
    return subject;
  }

  async #start(): Promise<void> {
    const { flags = [], credentials = 'development', isStoreInline = false, workers = 1 } = this.#options;
    const place = await this.#place();
    const config = parseConfig({}, ['--port', '0', ...place, ...flags], { dev: true });
    const onFatal = (error: Error): never => {
      throw error;
    };
    const log: EventLog = {
      debug: () => {},
      info: () => {},
      warn: (event, fields) => this.warnings.push({ event, ...fields }),
      error: () => {},
    };
    // The test clock may advance by days at once, and a worker that is late with its heartbeat by days would expire.
    const slow = { ...config, workerTimeoutMs: 1e12 };
    const needs = { log, credentials, onFatal, clock: this.clock };
    if (workers === 1) {
      const server = await startServer(slow, { ...needs, isStoreInline });
      this.#server = server;
      this.#urls = [server.url];
    } else {
      const server = await startTwoWorkers(slow, needs);
      this.#server = server;
      this.#urls = server.urls;
    }
  }

  async #place(): Promise<string[]> {
    const { dataDir, database = 'embedded' } = this.#options;
    if (dataDir !== undefined) return ['--data-dir', dataDir];
    if (database === 'embedded') return ['--memory'];
    this.#database ??= await borrowDatabase();
    const key = ['--encryption-key', ENCRYPTION_KEY];
    return ['--database-url', this.#database.url, '--database-listen-url', 'off', ...key];
  }

  /** `http://127.0.0.1:<port>` of the server. */
  get url(): string {
    return this.urlOf(0);
  }

  get workers(): number {
    return this.#urls.length;
  }

  /** The URL of a worker, by its number. */
  urlOf(worker: number): string {
    const url = this.#urls[worker];
    if (url === undefined) throw new Error(`worker ${worker} is not running`);
    return url;
  }

  /** May be called twice: statements about the end of a server close their server themselves. */
  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  async #close(): Promise<void> {
    this.#agent.destroy();
    await this.#server?.stop(0);
    await this.endpoint.close();
    await this.#database?.giveBack();
  }

  /**
   * Sends one request, with `target` byte for byte. Checks the rules for every response: no
   * redirect, JSON with its content type, an error object with every status from 400 on (contract M 1.3).
   */
  async ask(
    method: string,
    target: string,
    { headers = {}, body, token = this.token, worker = 0 }: Question = {},
  ): Promise<ApiResponse> {
    const authorization = token === null ? {} : { authorization: `Bearer ${token}` };
    const response = await this.#exchange(worker, method, target, { ...authorization, ...headers }, body);
    expect(response.status < 300 || response.status > 399, `a redirect: ${response.status}`).toBe(true);
    if (response.text !== '') expect(response.headers['content-type']).toBe('application/json');
    if (response.status >= 400) expect(Value.Check(ErrorSchema, response.json), response.text).toBe(true);
    return response;
  }

  /** Like `ask` with GET, for a request that must succeed; returns the parsed body. */
  async get(target: string, question?: Question): Promise<Json> {
    return this.#expectOk('GET', target, question);
  }

  /** Like `ask` with POST, for a request that must succeed; returns the parsed body. `json`: the body to send. */
  async post(target: string, json?: Json, question: Question = {}): Promise<Json> {
    const body = json === undefined ? question.body : JSON.stringify(json);
    return this.#expectOk('POST', target, { ...question, ...(body === undefined ? {} : { body }) });
  }

  async delete(target: string, json?: Json): Promise<Json> {
    return this.#expectOk('DELETE', target, json === undefined ? {} : { body: JSON.stringify(json) });
  }

  /** Publishes to a path of the endpoint, or to another destination. Returns the message's id. */
  async publish(to: string, headers: Record<string, string> = {}, body: string | Buffer = ''): Promise<string> {
    return (await this.#expectOk('POST', `/v2/publish/${this.destination(to)}`, { headers, body })).messageId;
  }

  async enqueue(queue: string, to: string, headers: Record<string, string> = {}): Promise<string> {
    return (await this.#expectOk('POST', `/v2/enqueue/${queue}/${this.destination(to)}`, { headers })).messageId;
  }

  /** Returns the URL of a path of the endpoint, and any other destination unchanged. */
  destination(to: string): string {
    return to.startsWith('/') ? `${this.endpoint.origin}${to}` : to;
  }

  /** The message's log entries, oldest first. */
  async logs(messageId: string): Promise<Json[]> {
    return (await this.get(`/v2/logs?messageId=${messageId}&order=earliestFirst`)).logs;
  }

  /** The states in the message's log, oldest first. */
  async states(messageId: string): Promise<string[]> {
    return (await this.logs(messageId)).map(({ state }) => state);
  }

  /** Resolves to the states in the message's log once the last one is `state`. */
  reached(messageId: string, state: string): Promise<string[]> {
    let states: string[] = [];
    return eventually(
      () => `${state} after ${states.join(', ')}`,
      async () => {
        states = await this.states(messageId);
        return states.at(-1) === state && states;
      },
    );
  }

  /** Resolves to the states in the message's log once the last state is final. */
  finished(messageId: string): Promise<string[]> {
    return eventually(`the end of ${messageId}`, async () => {
      const states = await this.states(messageId);
      return FINISHED.has(states.at(-1) ?? '') && states;
    });
  }

  /** Resolves to the newest entry once the message waits for its `nth` retry (from 1). */
  retryPlanned(messageId: string, nth = 1): Promise<Json> {
    return eventually(`retry ${nth} of ${messageId}`, async () => {
      const entries = await this.logs(messageId);
      const last = entries.at(-1);
      return entries.filter(({ state }) => state === 'RETRY').length === nth && last?.state === 'RETRY' && last;
    });
  }

  /** Publishes a message that becomes dead, and returns its entry in the DLQ. */
  async bury(path: string, headers: Record<string, string> = {}, body: string | Buffer = ''): Promise<Json> {
    this.endpoint.replies(path, { status: 500, body: 'broken' });
    return this.buried(await this.publish(path, { 'Upstash-Retries': '0', ...headers }, body));
  }

  /** Resolves to the DLQ entry of a message once the message is dead. */
  buried(messageId: string): Promise<Json> {
    return eventually(`the DLQ entry of ${messageId}`, async () => {
      return (await this.get(`/v2/dlq?messageId=${messageId}`)).messages[0];
    });
  }

  /**
   * Resolves once the attempts of all due messages have started. Publishes two messages and waits for their arrival: the
   * due messages are claimed before these.
   */
  async quiet(): Promise<void> {
    for (let nth = 1; nth <= 2; nth += 1) {
      const before = this.endpoint.to('/witness').length;
      await this.publish('/witness');
      await this.endpoint.arrival('/witness', before + 1);
    }
  }

  async #expectOk(method: string, target: string, question?: Question): Promise<Json> {
    const response = await this.ask(method, target, question);
    expect(response.status < 300, `${method} ${target}: ${response.status} ${response.text}`).toBe(true);
    return response.json;
  }

  #exchange(
    worker: number,
    method: string,
    path: string,
    headers: http.OutgoingHttpHeaders,
    body: string | Buffer = '',
  ): Promise<ApiResponse> {
    const { hostname, port } = new URL(this.urlOf(worker));
    return new Promise((resolve, reject) => {
      // With a length, like clients: Node would otherwise send the body of a DELETE without framing.
      const sized = { ...headers, 'content-length': Buffer.byteLength(body) };
      const request = http.request({ hostname, port, method, path, headers: sized, agent: this.#agent }, (response) => {
        const pieces: Buffer[] = [];
        response.on('data', (piece: Buffer) => pieces.push(piece));
        response.on('error', reject);
        response.on('end', () => {
          const text = Buffer.concat(pieces).toString();
          const json = text === '' ? undefined : JSON.parse(text);
          resolve({ status: response.statusCode ?? 0, headers: response.headers, text, json });
        });
      });
      request.on('error', reject);
      request.end(body);
    });
  }
}
