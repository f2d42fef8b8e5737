/** Which step of its run does a message carry, and which entry key of the journal is that step's (P8)? */
import { contentHash } from '../protocol/options/deduplication.ts';
import type { CallType, HeaderMap, MessageSettings } from '../protocol/options/settings.ts';
import { isTime } from '../protocol/times/durations.ts';
import { entryKeyOfCall, entryKeyOfContent, entryKeyOfPlan, entryKeyOfResult } from './entry-keys.ts';
import { scalarMembers } from './scalar-members.ts';

/** The step in a body, as far as it concerns us; the rest is the client library's (contract W 8.2). */
export interface Step {
  /** 0 in a plan. */
  stepId: number;
  stepName?: string;
  stepType?: string;
  concurrent?: number;
  /** In a plan: the id that its result will have. */
  targetStep?: number;
  /** When a sleep ends, to the millisecond: the header of its message has whole seconds only (contract W 14.3). */
  sleepUntilMs?: number;
}

const MEMBERS: ReadonlySet<string> = new Set([
  ...['stepId', 'stepName', 'stepType', 'concurrent', 'targetStep', 'sleepUntil'],
]);

/**
 * Reads a published step; `undefined` when the body holds none. Members of another type than expected are left out. What a
 * step returned may be large and of any shape, so it is skipped and never parsed.
 */
export function readStep(body: Uint8Array): Step | undefined {
  const members = scalarMembers(body, MEMBERS);
  return members && stepIn(members);
}

/** The same of a step that is parsed already. */
export function stepIn(members: Readonly<Record<string, unknown>>): Step | undefined {
  const { stepId, stepName, stepType, concurrent, targetStep, sleepUntil } = members;
  if (!isCount(stepId)) return undefined;
  const step: Step = { stepId };
  if (typeof stepName === 'string') step.stepName = stepName;
  if (typeof stepType === 'string') step.stepType = stepType;
  if (isCount(concurrent)) step.concurrent = concurrent;
  if (isCount(targetStep) && targetStep > 0) step.targetStep = targetStep;
  const sleepUntilMs = sleepUntilMsOf(sleepUntil);
  if (sleepUntilMs !== undefined) step.sleepUntilMs = sleepUntilMs;
  return step;
}

export interface EntryPlace {
  kind: 'step' | 'plan' | 'toCallback' | 'stepConfig';
  entryKey: string;
}

/** The kind and the entry key of a message that is appended to a run. */
export function entryKeyOf(message: {
  callType: Extract<CallType, 'step' | 'toCallback' | 'stepConfig'>;
  url: string;
  header: HeaderMap;
  body: Uint8Array;
  /** Headers that the result of a call will be delivered with: they name its step. */
  callbackHeader?: HeaderMap;
}): EntryPlace {
  const { callType, url, header, body, callbackHeader } = message;
  if (callType === 'toCallback') {
    const stepId = callbackHeader && stepIdOfCall(callbackHeader);
    if (stepId !== undefined) return { kind: 'toCallback', entryKey: entryKeyOfCall(stepId) };
  } else if (callType === 'step') {
    const step = readStep(body);
    const place = step && placeOf(step);
    if (place) return place;
  }
  // Without a step id, the content is what identifies it (contract W 4.6).
  return { kind: callType, entryKey: entryKeyOfContent(contentHash({ destination: url, header, body })) };
}

/** Those of a step; `undefined`: it has no id. */
export function placeOf({ stepId, targetStep }: Step): EntryPlace | undefined {
  if (stepId > 0) return { kind: 'step', entryKey: entryKeyOfResult(stepId) };
  return targetStep === undefined ? undefined : { kind: 'plan', entryKey: entryKeyOfPlan(targetStep) };
}

/** What the user calls the step that a message of a run carries; `undefined` where nothing says it. */
export function stepNameOf(message: {
  body: Uint8Array;
  header: HeaderMap;
  settings: Pick<MessageSettings, 'run' | 'callback'>;
}): string | undefined {
  const { run, callback } = message.settings;
  const header = run?.callType === 'toCallback' ? callback?.header : message.header;
  if (run?.callType !== 'toCallback' && run?.callType !== 'fromCallback') return readStep(message.body)?.stepName;
  return (header?.['Upstash-Workflow-Stepname'] ?? header?.['Waypost-Workflow-Stepname'])?.[0];
}

/** The step of a call, as the headers of its result name it. */
export function stepIdOfCall(header: HeaderMap): number | undefined {
  const text = header['Upstash-Workflow-Stepid']?.[0] ?? header['Waypost-Workflow-Stepid']?.[0];
  const stepId = text === undefined ? Number.NaN : Number(text);
  return isCount(stepId) && stepId > 0 ? stepId : undefined;
}

/**
 * The first millisecond that is not before `sleepUntil`, in Unix seconds. Microseconds are the finest that a number of
 * seconds of our days can express.
 */
export function sleepUntilMsOf(sleepUntil: unknown): number | undefined {
  if (typeof sleepUntil !== 'number') return undefined;
  const ms = Math.ceil(Math.round(sleepUntil * 1_000_000) / 1000);
  return isTime(ms) ? ms : undefined;
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}
