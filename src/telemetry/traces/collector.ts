/** Who gets the spans: a collector of OpenTelemetry, over HTTP. */
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { Agent, request } from 'undici';
import type { Machine, Timer } from '../../engine/ports.ts';

export interface CollectorOptions {
  url: string;
  headers: Readonly<Record<string, string>>;
  /** For one request with all its tries. */
  timeoutMs: number;
  isCompressed: boolean;
  tls: { ca?: Buffer | undefined; cert?: Buffer | undefined; key?: Buffer | undefined };
}

/** What OTLP says may be sent again. */
const PASSING = new Set([429, 502, 503, 504]);
const FIRST_PAUSE_MS = 1_000;
const PAUSE_GROWTH = 1.5;

const compress = promisify(gzip);

export class Collector {
  readonly #options: CollectorOptions;
  readonly #machine: Pick<Machine, 'startTimer'>;
  readonly #agent: Agent;
  readonly #closing = new AbortController();

  constructor(options: CollectorOptions, machine: Pick<Machine, 'startTimer'>) {
    this.#options = options;
    this.#machine = machine;
    this.#agent = new Agent({ connect: options.tls });
  }

  /** Resolves to why the collector has not got it; `undefined`: it has. Never rejects. */
  async send(body: Buffer): Promise<string | undefined> {
    const timeUp = new AbortController();
    const timer = this.#machine.startTimer(this.#options.timeoutMs, () => timeUp.abort());
    const signal = AbortSignal.any([timeUp.signal, this.#closing.signal]);
    try {
      const sent = this.#options.isCompressed ? await compress(body) : body;
      for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs *= PAUSE_GROWTH) {
        const result = await this.#try(sent, signal);
        if (result === 'taken') return undefined;
        if (!result.mayPass || signal.aborted) return result.failure;
        await this.#pause(result.retryAfterMs ?? pauseMs, signal);
        if (signal.aborted) return result.failure;
      }
    } finally {
      timer.cancel();
    }
  }

  /** Breaks off what is under way; what is given from now on fails at once. */
  async close(): Promise<void> {
    this.#closing.abort();
    await this.#agent.destroy();
  }

  async #try(body: Buffer, signal: AbortSignal): Promise<'taken' | Failure> {
    try {
      const {
        statusCode,
        headers,
        body: answer,
      } = await request(this.#options.url, {
        method: 'POST',
        headers: {
          ...{ 'content-type': 'application/x-protobuf', 'user-agent': 'waypost' },
          ...(this.#options.isCompressed && { 'content-encoding': 'gzip' }),
          ...this.#options.headers,
        },
        ...{ body, signal, dispatcher: this.#agent },
      });
      await answer.dump();
      if (statusCode >= 200 && statusCode < 300) return 'taken';
      const seconds = Number(headers['retry-after'] ?? Number.NaN);
      return {
        failure: `the collector answered ${statusCode}`,
        mayPass: PASSING.has(statusCode),
        ...(seconds >= 0 && { retryAfterMs: seconds * 1000 }),
      };
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException;
      return { failure: signal.aborted ? 'the collector did not answer in time' : (code ?? message), mayPass: true };
    }
  }

  #pause(ms: number, signal: AbortSignal): Promise<void> {
    if (signal.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      let timer: Timer | undefined;
      const end = (): void => {
        timer?.cancel();
        signal.removeEventListener('abort', end);
        resolve();
      };
      timer = this.#machine.startTimer(ms, end);
      signal.addEventListener('abort', end);
    });
  }
}

interface Failure {
  failure: string;
  mayPass: boolean;
  retryAfterMs?: number;
}
