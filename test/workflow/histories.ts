/** Builds journals and their delivery progress for tests of logs. */
import { Buffer } from 'node:buffer';
import type { CallType, HeaderMap, MessageSettings, RunSettings } from '../../src/protocol/options/settings.ts';
import type {
  DeliveryProgress,
  HistoryEntry,
  LoggedMessage,
  LoggedRun,
  RunHistory,
} from '../../src/workflow/history.ts';
import type { EntryKind, RunState } from '../../src/workflow/model.ts';

export const T0 = 1_800_000_000_000;
/** When the logs are read. */
export const NOW = T0 + 60_000;
export const WORKFLOW_URL = 'https://app.example/wf';

export const PART: RunSettings = {
  key: 1,
  id: 'wfr_a',
  createdAtMs: T0,
  url: WORKFLOW_URL,
  callType: 'step',
  features: [],
};

export const DELIVERED: DeliveryProgress = { end: 'delivered', failures: [] };
export const IN_FLIGHT: DeliveryProgress = { pending: { dueAtMs: T0, isInFlight: true }, failures: [] };
/** The progress of the cancelled messages of an ended run. */
export const CANCELED: DeliveryProgress = { end: 'canceled', failures: [] };
export const RETRYING: DeliveryProgress = {
  pending: { dueAtMs: NOW + 5_000, isInFlight: false },
  failures: [failure('500 Internal Server Error', 500)],
};
export const FAILED: DeliveryProgress = { end: 'failed', failures: [failure('489 Unknown', 489)] };

export function failure(error: string, status: number, header: HeaderMap = {}): DeliveryProgress['failures'][number] {
  return { atMs: T0 + 10, error, response: { status, header, body: Buffer.from('{"error":"Error"}') } };
}

/** A delivery that is due `ms` after now. */
export function dueIn(ms: number): DeliveryProgress {
  return { pending: { dueAtMs: NOW + ms, isInFlight: false }, failures: [] };
}

interface EntryOptions {
  progress?: DeliveryProgress;
  callType?: CallType;
  settings?: Partial<MessageSettings>;
  message?: Partial<LoggedMessage>;
  child?: LoggedMessage;
}

/** A journal that grows entry by entry; the `n`th message has key and id `n`. */
export class Journal {
  readonly entries: HistoryEntry[] = [];

  add(kind: EntryKind, entryKey: string, body: unknown, options: EntryOptions = {}): this {
    const key = this.entries.length + 1;
    const { progress = DELIVERED, callType = 'step', child } = options;
    const message: LoggedMessage = {
      id: `msg_${key}`,
      url: WORKFLOW_URL,
      method: 'POST',
      header: { 'Content-Type': ['application/json'] },
      body: typeof body === 'string' ? Buffer.from(body) : Buffer.from(JSON.stringify(body)),
      createdAtMs: T0 + key,
      notBeforeMs: T0 + key,
      settings: { dialect: 'upstash', maxRetries: 3, run: { ...PART, callType }, ...options.settings },
      ...options.message,
    };
    this.entries.push({
      position: key - 1,
      kind,
      entryKey,
      key,
      message,
      ...progress,
      ...(child ? { child } : undefined),
    });
    return this;
  }

  initial(progress?: DeliveryProgress, options: EntryOptions = {}): this {
    return this.add('initial', '0', 'payload', { ...options, ...(progress ? { progress } : undefined) });
  }

  step(
    stepId: number,
    members: Record<string, unknown> = {},
    progress?: DeliveryProgress,
    options: EntryOptions = {},
  ): this {
    const body = { stepId, stepName: `s${stepId}`, stepType: 'Run', out: `"r${stepId}"`, concurrent: 1, ...members };
    return this.add('step', `s${stepId}`, body, { ...options, ...(progress ? { progress } : undefined) });
  }

  plan(
    targetStep: number,
    concurrent: number,
    members: Record<string, unknown> = {},
    progress?: DeliveryProgress,
  ): this {
    const body = { stepId: 0, stepName: `s${targetStep}`, stepType: 'Run', concurrent, targetStep, ...members };
    return this.add('plan', `p${targetStep}`, body, progress ? { progress } : {});
  }

  call(stepId: number, progress: DeliveryProgress, members: { concurrent?: number } = {}): this {
    const header: HeaderMap = {
      'Upstash-Workflow-Stepid': [String(stepId)],
      'Upstash-Workflow-Stepname': [`s${stepId}`],
      'Upstash-Workflow-Steptype': ['Call'],
      'Upstash-Workflow-Concurrent': [String(members.concurrent ?? 1)],
    };
    const callback = { url: WORKFLOW_URL, method: 'POST', header } as const;
    return this.add('toCallback', `c${stepId}`, 'question', {
      progress,
      callType: 'toCallback',
      settings: { run: { ...PART, callType: 'toCallback' }, maxRetries: 0, callback },
      message: { url: 'https://third.example/api', method: 'PUT', header: { 'X-Sent': ['1'] } },
    });
  }

  /** The result of the call that was added last. */
  callback(status: number, progress: DeliveryProgress): this {
    const call = this.entries.findLast(({ kind }) => kind === 'toCallback');
    if (!call) throw new Error('there is no call');
    const { header } = call.message.settings.callback ?? { header: {} };
    const body = {
      status,
      header: { 'X-Got': ['2'] },
      body: Buffer.from('answer').toString('base64'),
      url: 'https://third.example/api',
      method: 'PUT',
    };
    return this.add('fromCallback', `f${call.key}`, body, {
      progress,
      callType: 'fromCallback',
      message: { header },
      settings: { run: { ...PART, callType: 'fromCallback' } },
    });
  }

  wait(stepId: number, members: Record<string, unknown> = {}): this {
    const result = { url: WORKFLOW_URL, header: {}, settings: { dialect: 'upstash', maxRetries: 3 } as const };
    const wait = {
      ...{ eventId: 'e1', timeout: '1m', deadlineMs: T0 + 60_000 },
      ...{ notified: result, timedOut: result, headers: {}, timeoutHeaders: {} },
    };
    const body = { stepId, stepName: `s${stepId}`, stepType: 'Wait', concurrent: 1, ...members };
    return this.add('wait', `w${stepId}`, body, { settings: { run: PART, wait } });
  }

  invoke(stepId: number, members: Record<string, unknown> = {}, child?: LoggedMessage): this {
    const result = { url: WORKFLOW_URL, header: {}, settings: { dialect: 'upstash', maxRetries: 3 } as const };
    const invoke = { runKey: 99, runId: 'wfr_child', url: 'https://app.example/child', createdAtMs: T0 + 50, result };
    const body = { stepId, stepName: `s${stepId}`, stepType: 'Invoke', concurrent: 1, ...members };
    return this.add('invoke', `i${stepId}`, body, {
      settings: { run: PART, invoke },
      ...(child ? { child } : undefined),
    });
  }

  history(state: RunState = 'RUN_STARTED', changes: Partial<LoggedRun> = {}): RunHistory {
    const run: LoggedRun = {
      key: 1,
      id: 'wfr_a',
      url: WORKFLOW_URL,
      createdAtMs: T0,
      state,
      config: {
        dialect: 'upstash',
        features: [],
        isKept: true,
        isRest: false,
        isUnknownSdk: false,
        header: {},
        maxRetries: 3,
      },
      ...(state === 'RUN_STARTED' ? undefined : { completedAtMs: NOW - 1_000 }),
      ...changes,
    };
    return { run, entries: this.entries };
  }
}
