/**
 * Sends the requests of workflows and their clients to the server: with the headers of the wire, over a network that loses
 * responses, and repeats and delays requests. A request without a response is sent again.
 */
import { readWait } from '../../src/api/runs/wait-request.ts';
import type { CheckpointCommand, CheckpointResult, Handover } from '../../src/engine/calls/commands.ts';
import type { Engine } from '../../src/engine/commands.ts';
import type { PublishCommand, Published } from '../../src/engine/messages/publish-command.ts';
import type { ClaimToken, MessageKey, Millis } from '../../src/engine/model.ts';
import type { RunOverride, StartedRun } from '../../src/engine/runs/dead/dead-run-store.ts';
import type { NotificationResult } from '../../src/engine/runs/stores.ts';
import { StoreUnavailable } from '../../src/engine/store-errors.ts';
import { ApiError } from '../../src/protocol/errors.ts';
import { itemRawHeaders, type OptionsInput, readPublishOptions } from '../../src/protocol/options/options.ts';
import { readInvocation } from '../../src/protocol/workflow/invocation.ts';
import type { JournalEntry, RunKey } from '../../src/workflow/model.ts';
import { identityOfStep, readStep } from '../../src/workflow/steps.ts';
import type { SeededRandom } from '../support/seeded-random.ts';
import { ProcessDied } from './process-clock.ts';
import type { RecordedStep } from './workflow-library.ts';
import { PROJECT, type World } from './world.ts';

export interface BatchItem {
  destination: string;
  headers: Record<string, string>;
  body?: string;
}

/** Thrown when the server responds that the run is over (400). */
export class RunIsOver extends Error {}

/** Thrown when no attempt to send the request got a response. */
export class NoResponse extends Error {}

/** The history of a request, for the checks. */
export interface RequestRecord {
  /** The elapsed time when the request was first sent, and when its first response arrived. */
  startAtMs: Millis;
  respondedAtMs: Millis;
  /** The number of times that the request was sent. */
  sent: number;
  result: 'pending' | 'acked' | 'refused' | 'unknown';
}

export interface NewStep {
  kind: 'step';
  text: string;
  time?: { delayS?: number; notBeforeS?: number };
}

/** The entry that an executed step adds to the journal. */
export type NewEntry =
  | NewStep
  | { kind: 'call' | 'invoke'; item: BatchItem }
  | {
      kind: 'wait';
      eventId: string;
      timeoutS: number;
      step: Omit<RecordedStep, 'targetStep'>;
      request: RequestRecord;
    };

/** The content of a checkpoint. */
export interface Checkpoint {
  done?: readonly { key: MessageKey; claimToken: ClaimToken }[];
  append?: readonly NewEntry[];
  failed?: NonNullable<CheckpointCommand['failed']>;
  lingerMs?: Millis;
}

export interface NetworkFaults {
  /** The probability of each fault, per request. */
  late: number;
  twice: number;
  lost: number;
}

const NO_QUOTAS = { retriesDefault: 3, retriesMax: 0, delayMsMax: 0, timeoutMsMax: 0 };
const TRIES_MAX = 6;
/** The maximum delay of a copy of a request that the network repeats. */
export const COPY_KEPT_MS_MAX = 10_000;

export class WorkflowClient {
  faults: NetworkFaults = { late: 0, twice: 0, lost: 0 };
  readonly #world: World;
  readonly #random: SeededRandom;

  constructor(world: World, random: SeededRandom) {
    this.#world = world;
    this.#random = random.fork();
  }

  request(): RequestRecord {
    return { startAtMs: this.#world.clock.elapsedMs, respondedAtMs: Infinity, sent: 0, result: 'pending' };
  }

  /** Like `POST /v2/batch`: publishes all items or none. */
  async batch(items: readonly BatchItem[], request = this.request()): Promise<Published[]> {
    const outcomes = await this.#send(request, (engine) => engine.publish(PROJECT, items.map(this.#commandOf)));
    return outcomes.map((outcome) => {
      if (outcome === 'tooManyQueues') throw new Error('no item names a queue');
      return outcome;
    });
  }

  /** Like `POST /v2/waypost/checkpoints`. Calls `handed` with the next message as soon as the server has sent it. */
  checkpoint(
    runKey: RunKey,
    { done = [], append = [], failed = [], lingerMs }: Checkpoint,
    handed: (next: Handover) => void,
  ): Promise<{ answer: CheckpointResult; next: Handover | undefined }> {
    const request = append.find((each) => each.kind === 'wait')?.request ?? this.request();
    const claims = done.map(({ key, claimToken }) => ({ key, claimToken }));
    const failures = failed.map(({ key, claimToken, outcome }) => ({ key, claimToken, outcome }));
    const entries = append.map((each) => (each.kind === 'wait' ? each.step : each));
    const hash = JSON.stringify([claims, failures, entries, lingerMs]);
    return this.#send(request, async (engine) => {
      const given = append.map((each) => this.#commandEntryOf(each));
      const stays = { failed: failures, ...(lingerMs !== undefined && { lingerMs }) };
      const answer = await engine.checkpoint(PROJECT, { runKey, done: claims, append: given, hash, ...stays });
      const next = answer.kind === 'saved' ? await answer.next : undefined;
      if (next) handed(next);
      return { answer, next };
    });
  }

  #commandEntryOf(appended: NewEntry): CheckpointCommand['append'][number] {
    switch (appended.kind) {
      case 'step': {
        const { delayS, notBeforeS } = appended.time ?? {};
        const body = Buffer.from(appended.text);
        const step = readStep(body);
        const identity = step && identityOfStep(step);
        if (!identity) throw new Error(`a checkpoint keeps no such step: ${appended.text}`);
        return {
          kind: 'step',
          body,
          identity,
          ...(delayS !== undefined && { delayMs: delayS * 1_000 }),
          ...(notBeforeS !== undefined && { notBeforeMs: notBeforeS * 1_000 }),
        };
      }
      case 'wait': {
        const { eventId, timeoutS, step } = appended;
        const timeoutMs = timeoutS * 1_000;
        const body = Buffer.from(JSON.stringify(step));
        return { kind: 'wait', eventId, timeout: `${timeoutS}s`, timeoutMs, step: body, stepId: step.stepId };
      }
      default:
        return { kind: appended.kind, command: this.#commandOf(appended.item) };
    }
  }

  async wait(eventId: string, headers: Record<string, string>, body: unknown, request = this.request()): Promise<void> {
    await this.#send(request, (engine) => {
      const command = readWait(eventId, inputOf(headers), body, {
        quotas: NO_QUOTAS,
        nowMs: this.#world.clock.wallMs(),
      });
      return engine.wait(PROJECT, command);
    });
  }

  notify(eventId: string, event: string, request = this.request()): Promise<NotificationResult[]> {
    return this.#send(request, async (engine) => {
      const results: NotificationResult[] = [];
      await engine.notify(PROJECT, eventId, Buffer.from(event), (chunk) => results.push(...chunk));
      return results;
    });
  }

  /** Resolves to `undefined` if no such run is active. */
  notifyRun(
    runId: string,
    eventId: string,
    event: string,
    request = this.request(),
  ): Promise<NotificationResult | undefined> {
    return this.#send(request, (engine) =>
      engine.notifyRun(PROJECT, runId, eventId, Buffer.from(event), { oldestOnly: false }),
    );
  }

  async complete(runId: string, response: string, createdAtMs: Millis, request = this.request()): Promise<void> {
    await this.#send(request, (engine) => engine.completeRun(PROJECT, runId, Buffer.from(response), createdAtMs));
  }

  cancel(runId: string, createdAtMs: Millis | undefined, request = this.request()): Promise<boolean> {
    return this.#send(request, (engine) => engine.cancelRun(PROJECT, runId, { createdAtMs }));
  }

  /** Resolves to `undefined` if the run was retried before or its id is taken. */
  async revive(
    how: 'resumeRun' | 'restartRun',
    dlqId: string,
    override: RunOverride,
    request: RequestRecord,
  ): Promise<StartedRun | undefined> {
    const answer = await this.#send(request, (engine) => engine[how](PROJECT, dlqId, override));
    return typeof answer === 'string' ? undefined : answer;
  }

  /** Resumes the parked run `runId`. Without an id, resumes all parked runs. */
  resumeParked(runId: string | undefined, request: RequestRecord): Promise<unknown> {
    return this.#send<unknown>(request, (engine) =>
      runId === undefined ? engine.resumeParkedRuns(PROJECT) : engine.resumeParkedRun(PROJECT, runId),
    );
  }

  readJournal(runId: string): Promise<JournalEntry[] | undefined> {
    return this.#send(this.request(), (engine) => engine.readJournal(PROJECT, runId));
  }

  readonly #commandOf = ({ destination, headers, body = '' }: BatchItem): PublishCommand => {
    const nowMs = this.#world.clock.wallMs();
    const options = readPublishOptions(inputOf(headers), 'publish', NO_QUOTAS, nowMs);
    const { run } = options;
    if (run?.kind !== 'start' || !run.isInvoke) return { url: destination, body: Buffer.from(body), options };
    const read = readInvocation(JSON.parse(body), options.settings.dialect, NO_QUOTAS, nowMs);
    const { payload, ...invocation } = read;
    return { url: destination, body: payload, options, invocation: { ...invocation, features: run.features } };
  };

  /** Retries while there is no response. Throws `RunIsOver` and `NoResponse`. */
  async #send<T>(request: RequestRecord, action: (engine: Engine) => Promise<T>): Promise<T> {
    const { clock } = this.#world;
    for (let tries = 0; tries < TRIES_MAX; tries += 1) {
      try {
        const answer = await this.#sendOnce(request, action);
        if (request.result === 'pending') Object.assign(request, { result: 'acked', respondedAtMs: clock.elapsedMs });
        return answer;
      } catch (error) {
        this.#checkError(request, error);
      }
      await clock.delay(this.#random.int(50, 2_000));
    }
    request.result = 'unknown';
    throw new NoResponse();
  }

  async #sendOnce<T>(request: RequestRecord, action: (engine: Engine) => Promise<T>): Promise<T> {
    const { clock } = this.#world;
    const random = this.#random;
    await clock.delay(random.chance(this.faults.late) ? random.int(1_000, 20_000) : random.int(1, 20));
    const once = () => {
      request.sent += 1;
      return this.#world.request(action);
    };
    const isRepeated = random.chance(this.faults.twice);
    const isLost = random.chance(this.faults.lost);
    const answering = once();
    if (isRepeated) {
      // The network sends a second copy, whose response is lost.
      const keptMs = random.int(0, COPY_KEPT_MS_MAX);
      void clock.delay(random.chance(0.5) ? 0 : keptMs).then(() => once().catch(() => {}));
    }
    const answer = await answering;
    if (isLost) throw new ProcessDied();
    return answer;
  }

  /** Returns if the request can be retried; throws otherwise. */
  #checkError(request: RequestRecord, error: unknown): void {
    if (error instanceof ProcessDied || error instanceof StoreUnavailable) return;
    if (error instanceof ApiError && error.code === 'unavailable') return;
    request.result = 'refused';
    request.respondedAtMs = this.#world.clock.elapsedMs;
    if (error instanceof ApiError && error.code === 'run_over') throw new RunIsOver();
    this.#world.violate('P11', `a request of a workflow failed: ${String(error)}`);
    throw error;
  }
}

function inputOf(headers: Record<string, string>): OptionsInput {
  const plainHeaders = { cloudEvents: false, baggage: false };
  return { rawHeaders: itemRawHeaders(headers), queryConfig: [], tokenInQuery: false, proxyHeaders: [], plainHeaders };
}
