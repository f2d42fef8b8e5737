/**
 * The environment of scenarios: the complete HTTP interface with an in-memory store, deliveries over real connections to the
 * user's app, and a clock that advances only when all work is done.
 */
import { expect } from 'vitest';
import { parseConfig } from '../../../src/config/parse.ts';
import type { Config } from '../../../src/config/table.ts';
import { parseAddressPolicy } from '../../../src/delivery/addresses/address-guard.ts';
import { createDelivery } from '../../../src/delivery/delivery.ts';
import type { Millis } from '../../../src/engine/model.ts';
import type { Clock, Delivery, Randomness } from '../../../src/engine/ports.ts';
import { createSystemRandomness, endOfTurn, systemClock } from '../../../src/system/system.ts';
import { TestDelivery } from '../../../src/testing/test-delivery.ts';
import { TimeAdvancer } from '../../../src/testing/time-advancer.ts';
import { VirtualClock } from '../../../src/testing/virtual-clock.ts';
import { type Json, openWorld, type Reply, TOKEN, type World } from '../../api/support/world.ts';
import { App, USER_HEADERS } from './app.ts';
import type { Environment, Invokable, Library, Program, Terms, Wish } from './library.ts';
import { Run } from './run.ts';

/** Signing keys of a world's first project. */
const KEYS = { QSTASH_CURRENT_SIGNING_KEY: 'sig_1', QSTASH_NEXT_SIGNING_KEY: 'sig_2' };

/** Longest that a scenario may wait, by the held clock. */
const PATIENCE_MS: Millis = 30 * 86_400_000;

/** A workflow of the app. */
export interface Workflow {
  url: string;
  trigger(wish?: Wish): Promise<Run>;
}

interface Parts {
  world: World;
  clock: VirtualClock;
  delivery: TestDelivery;
  url: string;
}

export class Service {
  readonly app = new App();
  readonly clock: VirtualClock;
  readonly env: Environment;
  readonly #world: World;
  readonly #delivery: TestDelivery;
  readonly #time: TimeAdvancer;

  private constructor({ world, clock, delivery, url }: Parts) {
    this.clock = clock;
    this.#world = world;
    this.#delivery = delivery;
    this.#time = new TimeAdvancer(clock, () => (this.#isBusy ? endOfTurn() : undefined));
    this.env = { QSTASH_URL: url, QSTASH_TOKEN: TOKEN, ...KEYS };
  }

  /** `flags`: settings, as those of `waypost dev`. */
  static async open(flags: readonly string[] = []): Promise<Service> {
    // A round of dropping each minute would be most of what happens in the days that scenarios sleep.
    const config = parseConfig({}, ['--memory', '--retention-interval', '1d', ...flags], { dev: true });
    const clock = new VirtualClock();
    const randomness = createSystemRandomness();
    const delivery = new TestDelivery(openDelivery(config, clock, randomness), {
      clock,
      timeoutMsMax: config.timeoutMaxMs,
    });
    const world = await openWorld(
      { limits: config, checkDestination: () => () => undefined },
      { clock, randomness, delivery, settings: config },
    );
    const { url } = await world.listen();
    const service = new Service({ world, clock, delivery, url });
    await service.app.open();
    return service;
  }

  get #isBusy(): boolean {
    return this.#delivery.inFlight > this.app.held || this.app.answering > 0;
  }

  async close(): Promise<void> {
    await this.#world.close();
    await this.#delivery.close();
    await this.app.close();
    expect(this.app.mishaps).toEqual([]);
    // Whatever a library sends, of whichever generation, is an option or known to be none.
    expect(this.#world.logLines.filter(({ event }) => event === 'option_ignored')).toEqual([]);
  }

  /** A path of the app as an URL. */
  at(path: string): string {
    return `${this.app.origin}${path}`;
  }

  /** Serves `program` at `path` with the library and makes it ready to be triggered. */
  workflow<P>(library: Library, path: string, program: Program<P>, terms: Terms<P> = {}): Workflow {
    this.app.workflow(path, library.serve(program, terms, this.env));
    return this.triggered(library, path, terms);
  }

  /** Serves several workflows below `path`, which ends in a slash, each at its key: they may invoke each other. */
  workflows(library: Library, path: string, workflows: Record<string, Invokable>): void {
    this.app.workflow(path, library.serveMany(workflows, this.env));
  }

  /** What is served at `path` already, made ready to be triggered. */
  triggered<P>(library: Library, path: string, terms: Terms<P> = {}): Workflow {
    const url = this.at(path);
    return {
      url,
      trigger: async ({ headers, ...wish } = {}) => {
        const all = { ...wish, headers: { ...USER_HEADERS, ...headers } };
        return this.run(await library.trigger(url, terms, all, this.env), library);
      },
    };
  }

  run(id: string, library: Library): Run {
    return new Run(this, library, id);
  }

  /** Asks over HTTP, as the owner of the token unless `headers` say otherwise. */
  async ask(
    method: string,
    path: string,
    { headers = {}, body }: { headers?: Record<string, string>; body?: string } = {},
  ): Promise<Pick<Reply, 'status' | 'text' | 'json'>> {
    const answer = await fetch(`${this.env.QSTASH_URL}${path}`, {
      method,
      headers: { authorization: `Bearer ${TOKEN}`, ...headers },
      ...(body !== undefined && { body }),
    });
    const text = await answer.text();
    return { status: answer.status, text, json: text === '' ? undefined : JSON.parse(text) };
  }

  /** As `ask`, for what must work: answers the parsed body. */
  async expectOk(...request: Parameters<Service['ask']>): Promise<Json> {
    const { status, text, json } = await this.ask(...request);
    expect(status < 300, `${request[0]} ${request[1]}: ${status} ${text}`).toBe(true);
    return json;
  }

  /** Resolves once neither side has anything left to do before time passes; what the app holds back apart. */
  quiet(): Promise<void> {
    return this.#time.waitUntilQuiet();
  }

  /** Lets `ms` pass, and everything happen that falls due on the way. */
  pass(ms: Millis): Promise<void> {
    return this.#time.advance(ms);
  }

  /** Lets time pass until `look` finds something, and answers it. Rejects when nothing is left to wait for. */
  async until<T>(what: string, look: () => T | Promise<T>): Promise<Exclude<T, undefined | null | false>> {
    const untilMs = this.clock.nowMs() + PATIENCE_MS;
    await this.quiet();
    let sent = Number.NaN;
    do {
      // Servers look at the clock once a minute: what was looked at before is as it was while nothing is sent.
      if (sent === this.#delivery.startedCount) continue;
      sent = this.#delivery.startedCount;
      const found = await look();
      if (found !== undefined && found !== null && found !== false)
        return found as Exclude<T, undefined | null | false>;
    } while (await this.#time.advanceToNextTimer(untilMs));
    throw new Error(`waited ${PATIENCE_MS} ms in vain for ${what}`);
  }
}

function openDelivery(config: Config, clock: Clock, randomness: Randomness): Delivery {
  return createDelivery({
    // The library compares the times in signatures with the machine's clock, so they have to come from it.
    clock: {
      wallMs: () => systemClock.wallMs(),
      elapsedMs: 0,
      startTimer: (ms, task) => clock.startTimer(ms, task),
    },
    randomness,
    signingKey: () => KEYS.QSTASH_CURRENT_SIGNING_KEY,
    addresses: parseAddressPolicy('all'),
    timeoutMsMax: config.timeoutMaxMs,
    responseBytesMax: config.responseBytesMax,
    responseMemoryBytesMax: config.inFlightBytesMax,
    responseHeaderBytesMax: config.responseHeaderBytesMax,
    connectionsPerOriginMax: config.inFlightPerOriginMax,
    originsMax: config.originsMax,
    verifyTls: true,
  });
}
