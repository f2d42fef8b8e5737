/**
 * The load on workflows while server and app are killed: triggers (single, in batches, and as plain HTTP), notifications
 * of waiting runs, and cancels. Operations that a kill interrupted are done after the restart.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { Client as WorkflowClient } from '@upstash/workflow';
import { DEVELOPMENT_TOKEN } from '../../../bench/waypost-process.ts';
import type { SeededRandom } from '../../support/seeded-random.ts';
import type { Client, Reply } from '../client.ts';
import { newTag } from '../publishing.ts';
import { eventOf, newMark, type Payload, PERSISTENT, type ProgramName } from './programs.ts';
import type { RunBook, TriggeredRun } from './run-book.ts';

export interface RunLoadOptions {
  book: RunBook;
  random: SeededRandom;
  /** The URL of the server, which never changes. */
  serverUrl: string;
  appUrl: string;
  thirdUrl: string;
  /** Default: the token of the development account. */
  token?: string;
  /** Default: `PACE`. */
  pace?: { workers: number; pauseMs: { min: number; max: number } };
}

/** The number of triggers of each program, of about a hundred. */
const WEIGHTS = {
  sequence: 24,
  sleeps: 8,
  calls: 10,
  parallel: 10,
  waits: 10,
  races: 7,
  notifies: 5,
  hooks: 5,
  invokes: 8,
  refuses: 4,
  exhausts: 3,
  oversleeps: 6,
} satisfies Partial<Record<ProgramName, number>>;

/** The triggered programs that end by themselves. */
export const ENDING_PROGRAMS = (Object.keys(WEIGHTS) as ProgramName[]).filter((name) => name !== 'oversleeps');

const PACE = { workers: 3, pauseMs: { min: 20, max: 80 } };
const CANCEL_ANY = 0.04;
const CANCEL_SLEEPER = 0.4;
/** Retries that are soon used up. The other programs survive a few kills of the app. */
const EXHAUSTED = { retries: 2, retryDelay: '20' };
const FEW_AT_A_TIME = { flowControl: { key: 'runs', parallelism: 3 } };
/** The timing for a wait that times out after a second. */
const RACE_MS = { min: 700, max: 1_300 };
/** The timing for a sleep of 300 ms that starts shortly after the trigger. */
const NAP_MS = { min: 250, max: 500 };

/** An operation on a run, which is repeated until its outcome is certain. */
interface Errand {
  run: TriggeredRun;
  kind: 'notify' | 'notify all waiters' | 'cancel';
  afterMs: number;
}

export class RunLoad {
  readonly #options: RunLoadOptions;
  readonly #workflows: WorkflowClient;
  #errands: Errand[] = [];

  constructor(options: RunLoadOptions) {
    this.#options = options;
    const { serverUrl: baseUrl, token = DEVELOPMENT_TOKEN } = options;
    this.#workflows = new WorkflowClient({ baseUrl, token, retry: false });
  }

  /** Runs until `signal` aborts, and then until the last operation in flight has a response or has lost its connection. */
  async run(client: Client, signal: AbortSignal): Promise<void> {
    const { random, pace = PACE } = this.#options;
    const trigger = async () => {
      while (!signal.aborted) {
        await this.#someTrigger(client);
        await sleep(random.int(pace.pauseMs.min, pace.pauseMs.max));
      }
    };
    const runErrands = async () => {
      while (!signal.aborted) {
        await this.#runErrands(client);
        await sleep(10);
      }
    };
    await Promise.all([...Array.from({ length: pace.workers }, trigger), runErrands()]);
  }

  /** Completes the remaining operations, so that all runs can end. */
  async calmDown(client: Client): Promise<void> {
    while (this.#errands.length > 0) {
      await this.#runErrands(client);
      await sleep(10);
    }
  }

  async #someTrigger(client: Client): Promise<void> {
    const { random } = this.#options;
    const program = random.weighted(WEIGHTS);
    if (program !== 'sequence') return this.#trigger([this.#attempt(program)]);
    switch (random.weighted({ one: 5, limited: 4, batch: 3, plain: 4, later: 2 })) {
      case 'one':
        return this.#trigger([this.#attempt(program)]);
      case 'limited':
        return this.#trigger([this.#attempt(program)], FEW_AT_A_TIME);
      case 'batch':
        return this.#trigger(Array.from({ length: random.int(2, 4) }, () => this.#attempt(program)));
      case 'plain':
        return this.#triggerPlainly(client, this.#attempt(program));
      case 'later':
        return this.#trigger([this.#attempt(program)], { delay: '1s' });
    }
  }

  #attempt(program: ProgramName): TriggeredRun {
    const tag = newTag();
    return this.#options.book.attempted(`wfr_${tag}`, tag, program);
  }

  /** Triggers with the client library, which prefixes ids with `wfr_`. */
  async #trigger(runs: readonly TriggeredRun[], more: object = {}): Promise<void> {
    const { thirdUrl } = this.#options;
    const terms = ({ program }: TriggeredRun) =>
      program === 'exhausts' ? { ...EXHAUSTED, failureUrl: `${thirdUrl}/told` } : PERSISTENT;
    const requests = runs.map((run) => ({
      url: this.#urlOf(run),
      body: this.#payloadOf(run),
      workflowRunId: run.tag,
      ...terms(run),
      ...more,
    }));
    try {
      await this.#workflows.trigger(requests);
      for (const run of runs) run.trigger = 'acked';
    } catch (error) {
      const status = statusOf(error);
      // A worker that does not know whether its commit succeeded responds with 503.
      if (status !== undefined && status !== 503) throw new Error(`a trigger was answered ${status}`, { cause: error });
    }
    for (const run of runs) this.#plan(run);
  }

  /** Triggers without the library: the server then has to detect it at the endpoint. */
  async #triggerPlainly(client: Client, run: TriggeredRun): Promise<void> {
    const headers = {
      'content-type': 'application/json',
      'Upstash-Workflow-RunId': run.runId,
      'Upstash-Retries': String(PERSISTENT.retries),
      'Upstash-Retry-Delay': PERSISTENT.retryDelay,
    };
    const body = JSON.stringify(this.#payloadOf(run));
    const reply = await client.call('POST', `/v2/trigger/${this.#urlOf(run)}`, headers, body);
    if (reply.kind === 'refused') throw refusal('a plain trigger', reply);
    if (reply.kind === 'ok') run.trigger = 'acked';
    this.#plan(run);
  }

  /** Schedules the operations on a run that may exist from now on. */
  #plan(run: TriggeredRun): void {
    const { random } = this.#options;
    const soon = () => performance.now() + random.int(0, 300);
    if (run.program === 'waits') this.#errands.push({ run, kind: 'notify', afterMs: soon() });
    if (run.program === 'races' && random.chance(0.7)) {
      const afterMs = performance.now() + random.int(RACE_MS.min, RACE_MS.max);
      this.#errands.push({ run, kind: 'notify all waiters', afterMs });
    }
    if (run.program === 'sleeps' && random.chance(CANCEL_SLEEPER)) {
      this.#errands.push({ run, kind: 'cancel', afterMs: performance.now() + random.int(NAP_MS.min, NAP_MS.max) });
    } else if (run.program === 'oversleeps' || random.chance(CANCEL_ANY)) {
      this.#errands.push({ run, kind: 'cancel', afterMs: soon() });
    }
  }

  async #runErrands(client: Client): Promise<void> {
    const due = this.#errands.filter(({ afterMs }) => afterMs <= performance.now());
    this.#errands = this.#errands.filter((errand) => !due.includes(errand));
    const open = await Promise.all(due.map(async (errand) => ((await this.#do(errand, client)) ? [] : [errand])));
    this.#errands.push(...open.flat());
  }

  /** Resolves to false if the outcome is unknown. */
  #do({ run, kind }: Errand, client: Client): Promise<boolean> {
    switch (kind) {
      case 'notify':
        return this.#notifyRun(run, client);
      case 'notify all waiters':
        return this.#notifyWaiters(run, client);
      case 'cancel':
        return this.#cancel(run, client);
    }
  }

  async #notifyRun(run: TriggeredRun, client: Client): Promise<boolean> {
    const news = this.#newsFor(run);
    const reply = await client.call('POST', `/v2/notify/${run.runId}/${eventOf(run.tag)}`, {}, news);
    if (reply.kind === 'unknown') return false;
    if (reply.kind === 'ok') run.news.set(news, 'acked');
    else run.news.delete(news);
    // 404: the run never existed, or has ended. The final checks find a run that is still waiting.
    if (reply.kind === 'refused' && reply.status !== 404) throw refusal('a notification', reply);
    return true;
  }

  async #notifyWaiters(run: TriggeredRun, client: Client): Promise<boolean> {
    const news = this.#newsFor(run);
    const reply = await client.call('POST', `/v2/notify/${eventOf(run.tag)}`, {}, news);
    if (reply.kind === 'refused') throw refusal('a notification', reply);
    if (reply.kind === 'unknown') return true; // the wait times out
    run.news.set(news, 'acked');
    if ((reply.json as unknown[]).length > 0) run.wokenBy = news;
    return true;
  }

  async #cancel(run: TriggeredRun, client: Client): Promise<boolean> {
    const isFirst = run.cancel === undefined;
    run.cancel = 'unknown';
    const reply = await client.call('DELETE', `/v2/workflows/runs/${run.runId}`);
    if (reply.kind === 'unknown') return false;
    if (reply.kind === 'ok') run.cancel = 'acked';
    else if (reply.status !== 404) throw refusal('a cancel', reply);
    // The run had ended, and no other request has cancelled it.
    else if (isFirst) run.cancel = undefined;
    return true;
  }

  #newsFor(run: TriggeredRun): string {
    const news = `news for ${run.tag}${newMark()}`;
    run.news.set(news, 'unknown');
    return news;
  }

  #urlOf({ program }: TriggeredRun): string {
    return `${this.#options.appUrl}/programs/${program}`;
  }

  #payloadOf({ tag }: TriggeredRun): Payload {
    return { tag, third: this.#options.thirdUrl };
  }
}

/** The status of the response that caused an error; `undefined` if there was no response. */
function statusOf(error: unknown): number | undefined {
  return error instanceof Error && 'status' in error && typeof error.status === 'number' ? error.status : undefined;
}

function refusal(what: string, reply: Reply): Error {
  return new Error(`${what} was answered ${JSON.stringify(reply)}`);
}
