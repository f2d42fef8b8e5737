/** Reads the step that a message of a run carries, and derives its entry key in the journal (P8). */
import { contentHash } from '../protocol/options/deduplication.ts';
import type { CallType, HeaderMap, MessageSettings } from '../protocol/options/settings.ts';
import { isDateMs } from '../protocol/times/durations.ts';
import { entryKeyOfCall, entryKeyOfContent, entryKeyOfPlan, entryKeyOfResult } from './entry-keys.ts';
import { scalarMembers } from './scalar-members.ts';

/** The members of a step that the server reads. All other members belong to the client library (contract W 8.2). */
export interface Step {
  /** The id of the step; 0 in a plan. */
  stepId: number;
  stepName?: string;
  stepType?: string;
  concurrent?: number;
  /** In a plan: the id of the planned step. */
  targetStep?: number;
  /** When a sleep ends, to the millisecond. The header of the message has only whole seconds (contract W 14.3). */
  sleepUntilMs?: number;
}

const MEMBERS: ReadonlySet<string> = new Set([
  ...['stepId', 'stepName', 'stepType', 'concurrent', 'targetStep', 'sleepUntil'],
]);

/**
 * Reads a published step. Returns undefined if the body contains no step. Members of an unexpected type are omitted. The
 * result of a step may be large and of any type, so it is skipped and never parsed.
 */
export function readStep(body: Uint8Array): Step | undefined {
  const members = scalarMembers(body, MEMBERS);
  return members && stepOfMembers(members);
}

/** Like `readStep`, for a step that is already parsed. */
export function stepOfMembers(members: Readonly<Record<string, unknown>>): Step | undefined {
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

export interface EntryIdentity {
  kind: 'step' | 'plan' | 'toCallback' | 'stepConfig';
  entryKey: string;
}

/** The kind and the entry key of a message that is appended to a run. */
export function entryIdentityOf(message: {
  callType: Extract<CallType, 'step' | 'toCallback' | 'stepConfig'>;
  url: string;
  header: HeaderMap;
  body: Uint8Array;
  /** The headers with which the result of a call will be delivered. These headers name the step of the call. */
  callbackHeader?: HeaderMap;
}): EntryIdentity {
  const { callType, url, header, body, callbackHeader } = message;
  if (callType === 'toCallback') {
    const stepId = callbackHeader && stepIdOfCall(callbackHeader);
    if (stepId !== undefined) return { kind: 'toCallback', entryKey: entryKeyOfCall(stepId) };
  } else if (callType === 'step') {
    const step = readStep(body);
    const identity = step && identityOfStep(step);
    if (identity) return identity;
  }
  // Without a step id, the content identifies the entry (contract W 4.6).
  return { kind: callType, entryKey: entryKeyOfContent(contentHash({ destination: url, header, body })) };
}

/** The identity of a step's entry. Returns undefined if the step has no id. */
export function identityOfStep({ stepId, targetStep }: Step): EntryIdentity | undefined {
  if (stepId > 0) return { kind: 'step', entryKey: entryKeyOfResult(stepId) };
  return targetStep === undefined ? undefined : { kind: 'plan', entryKey: entryKeyOfPlan(targetStep) };
}

/** The name that the user gave to the step of a message. Returns undefined if the message has no such name. */
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

/** The id of the step of a call, from the headers of the call's result. */
export function stepIdOfCall(header: HeaderMap): number | undefined {
  const text = header['Upstash-Workflow-Stepid']?.[0] ?? header['Waypost-Workflow-Stepid']?.[0];
  const stepId = text === undefined ? Number.NaN : Number(text);
  return isCount(stepId) && stepId > 0 ? stepId : undefined;
}

/**
 * The first whole millisecond at or after `sleepUntil`, in Unix seconds. `sleepUntil` is rounded to microseconds first,
 * which is the precision of a present-day Unix time in floating point.
 */
export function sleepUntilMsOf(sleepUntil: unknown): number | undefined {
  if (typeof sleepUntil !== 'number') return undefined;
  const ms = Math.ceil(Math.round(sleepUntil * 1_000_000) / 1000);
  return isDateMs(ms) ? ms : undefined;
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}
