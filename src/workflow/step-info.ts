/** Reads the facts about a step from the messages that carry the step, for both views of the log (contract W 20). */
import { Buffer } from 'node:buffer';
import { isObject } from '../protocol/json-objects.ts';
import { attemptSettingsOf } from '../protocol/options/config-options.ts';
import type { AttemptSettings, CallType, HeaderMap, Redaction } from '../protocol/options/settings.ts';
import { parseDurationMs } from '../protocol/times/durations.ts';
import { entryKeyOfInvocation, entryKeyOfWait } from './entry-keys.ts';
import type { KeptResponse, LoggedMessage } from './history.ts';
import { memberJson, scalarMembers } from './scalar-members.ts';
import { readStep, sleepUntilMsOf, stepIdOfCall } from './steps.ts';

export interface StepInfo extends AttemptSettings {
  /** The id of the step; 0 for the initial step, and for a message without a step. */
  stepId: number;
  stepName?: string;
  stepType?: string;
  callType: CallType;
  /** The id of the last message or record that belongs to the step. */
  messageId: string;
  concurrent: number;
  createdAtMs: number;
  /** In a plan: the id of the planned step. */
  targetStep?: number;
  /** The result of the step. In the initial step, the payload of the run; for an event, its data. */
  out?: Uint8Array;
  header: HeaderMap;
  redact?: Redaction;
  sleepForMs?: number;
  sleepUntilMs?: number;
  call?: Partial<CallInfo>;
  wait?: WaitInfo;
  invoked?: InvokedInfo;
}

export interface CallInfo {
  url: string;
  method: string;
  header: HeaderMap;
  body: Uint8Array;
  response: KeptResponse;
}

export interface WaitInfo {
  eventId?: string;
  /** The timeout of the wait, as the client sent it. */
  timeout?: string;
  deadlineMs?: number;
  isTimeout?: boolean;
}

export interface InvokedInfo {
  runId: string;
  url: string;
  createdAtMs: number;
  /** The first message of the invoked run, unless this message was deleted. */
  first?: Pick<LoggedMessage, 'body' | 'header' | 'settings'>;
}

/** Other messages that are needed to read the step of a message. */
export interface StepContext {
  isInitial: boolean;
  /** The wait or the invocation whose result the message is; absent for every other message. */
  record?: LoggedMessage;
  /** The first message of the invoked run. */
  child?: LoggedMessage;
}

export function stepInfoOf(message: LoggedMessage, { isInitial, record, child }: StepContext): StepInfo {
  const { settings } = message;
  const info = { ...baseOf(message), ...(isInitial ? initialOf(message.body) : infoByCallType(message)) };
  const { wait, invoke } = record?.settings ?? settings;
  if (wait) info.wait = { eventId: wait.eventId, timeout: wait.timeout, deadlineMs: wait.deadlineMs, ...info.wait };
  if (invoke) {
    const { runId, url, createdAtMs } = invoke;
    info.invoked = child ? { runId, url, createdAtMs, first: child } : { runId, url, createdAtMs };
  }
  return info;
}

/**
 * Joins the facts of two messages about one step. A fact of the later message takes precedence, except the creation time.
 */
export function joinStepInfo(earlier: StepInfo, later: StepInfo): StepInfo {
  const { targetStep: _planned, ...rest } = earlier;
  const joined: StepInfo = { ...rest, ...later, createdAtMs: earlier.createdAtMs };
  joined.concurrent = Math.max(earlier.concurrent, later.concurrent);
  if (earlier.call || later.call) joined.call = { ...earlier.call, ...later.call };
  if (earlier.wait || later.wait) joined.wait = { ...earlier.wait, ...later.wait };
  return joined;
}

function baseOf({ id, createdAtMs, header, settings }: LoggedMessage): StepInfo {
  const base: StepInfo = {
    stepId: 0,
    callType: settings.run?.callType ?? 'step',
    messageId: id,
    concurrent: 1,
    createdAtMs,
    header,
    ...attemptSettingsOf(settings),
  };
  if (settings.redact) base.redact = settings.redact;
  return base;
}

function infoByCallType(message: LoggedMessage): Partial<StepInfo> {
  switch (message.settings.run?.callType) {
    case 'toCallback':
      return callOf(message);
    case 'fromCallback':
      return callResultOf(message);
    case 'failureCall':
    case 'stepConfig':
      return {};
    default:
      return stepOf(message.body);
  }
}

function initialOf(body: Uint8Array): Partial<StepInfo> {
  const initial = { stepName: 'init', stepType: 'Initial' };
  return body.length === 0 ? initial : { ...initial, out: body };
}

const STEP_MEMBERS: ReadonlySet<string> = new Set([
  ...['stepId', 'stepName', 'stepType', 'concurrent', 'targetStep'],
  ...['sleepFor', 'sleepUntil', 'waitEventId', 'waitTimeout', 'timeout'],
]);

/** Reads a step as the client library publishes it (contract W 8.2). Members of an unexpected type are omitted. */
function stepOf(body: Uint8Array): Partial<StepInfo> {
  const step = scalarMembers(body, STEP_MEMBERS) ?? {};
  const info: Partial<StepInfo> = { stepId: countOf(step['stepId']) ?? 0 };
  const target = countOf(step['targetStep']);
  if (info.stepId === 0 && target !== undefined) {
    info.stepId = target;
    info.targetStep = target;
  }
  const { stepName, stepType } = step;
  if (typeof stepName === 'string') info.stepName = stepName;
  if (typeof stepType === 'string') info.stepType = stepType;
  const concurrent = countOf(step['concurrent']);
  if (concurrent !== undefined && concurrent > 0) info.concurrent = concurrent;
  readSleep(step, info);
  readWait(step, info);
  const out = outOf(body, info.stepType);
  if (out) info.out = out;
  return info;
}

/** Reads the time of a sleep: seconds, or a duration (contract W 14.3). */
function readSleep({ sleepFor, sleepUntil }: Record<string, unknown>, info: Partial<StepInfo>): void {
  if (typeof sleepFor === 'string' || typeof sleepFor === 'number') {
    const ms = parseDurationMs(String(sleepFor));
    if (ms !== undefined) info.sleepForMs = ms;
  }
  const sleepUntilMs = sleepUntilMsOf(sleepUntil);
  if (sleepUntilMs !== undefined) info.sleepUntilMs = sleepUntilMs;
}

function readWait({ waitEventId, waitTimeout, timeout }: Record<string, unknown>, info: Partial<StepInfo>): void {
  const wait: WaitInfo = {};
  if (typeof waitEventId === 'string') wait.eventId = waitEventId;
  if (typeof timeout === 'string') wait.timeout = timeout;
  if (waitTimeout === true) wait.isTimeout = true;
  if (waitEventId !== undefined || waitTimeout !== undefined) info.wait = wait;
}

const WAITS: ReadonlySet<string | undefined> = new Set(['Wait', 'WaitForWebhook']);

/**
 * The result of a step. Usually it is JSON inside a JSON string. Any other JSON, of any size and depth, is returned
 * unparsed. The data of an event is base64 (contract W 14.6).
 */
function outOf(body: Uint8Array, stepType: string | undefined): Uint8Array | undefined {
  const bytes = memberJson(body, 'out');
  const json = bytes ? Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8') : '';
  if (json === '' || json === 'null' || json === '""') return undefined;
  const text = json.startsWith('"') ? tryParse(json) : undefined;
  return typeof text === 'string' ? Buffer.from(text, WAITS.has(stepType) ? 'base64' : 'utf8') : bytes;
}

function callOf({ url, method, header, body, settings }: LoggedMessage): Partial<StepInfo> {
  const call: Partial<CallInfo> = { url, method, header };
  if (body.length > 0) call.body = body;
  return { ...stepOfCall(settings.callback?.header ?? {}), call };
}

function callResultOf({ header, body }: LoggedMessage): Partial<StepInfo> {
  const report = objectOf(body);
  const call: Partial<CallInfo> = {};
  if (typeof report['url'] === 'string') call.url = report['url'];
  if (typeof report['method'] === 'string') call.method = report['method'];
  const { status } = report;
  if (typeof status === 'number') {
    const responseBody = typeof report['body'] === 'string' ? Buffer.from(report['body'], 'base64') : new Uint8Array(0);
    call.response = { status, header: headerOf(report['header']), body: responseBody };
  }
  return { ...stepOfCall(header), call };
}

/** Reads the step of a call from the headers of its result, which name this step (contract W 14.5). */
function stepOfCall(header: HeaderMap): Partial<StepInfo> {
  const headerValue = (name: string) =>
    header[`Upstash-Workflow-${name}`]?.[0] ?? header[`Waypost-Workflow-${name}`]?.[0];
  const info: Partial<StepInfo> = {
    stepId: stepIdOfCall(header) ?? 0,
    stepType: headerValue('Steptype') ?? 'Call',
  };
  const stepName = headerValue('Stepname');
  if (stepName !== undefined) info.stepName = stepName;
  const concurrent = countOf(Number(headerValue('Concurrent')));
  if (concurrent !== undefined && concurrent > 0) info.concurrent = concurrent;
  return info;
}

function headerOf(value: unknown): HeaderMap {
  const header = Object.create(null) as HeaderMap;
  if (typeof value !== 'object' || value === null) return header;
  for (const [name, values] of Object.entries(value)) {
    if (Array.isArray(values)) header[name] = values.filter((each) => typeof each === 'string');
  }
  return header;
}

function countOf(value: unknown): number | undefined {
  return Number.isSafeInteger(value) && (value as number) >= 0 ? (value as number) : undefined;
}

/** The members of a JSON object. Returns no members if the bytes are not a JSON object. */
function objectOf(bytes: Uint8Array): Record<string, unknown> {
  const value = tryParse(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8'));
  return isObject(value) ? value : {};
}

function tryParse(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return undefined; // expected: a body can be anything
  }
}

/** The entry key of the wait or invocation whose result is `body`. Returns undefined if `body` is no such result. */
export function recordEntryKeyOf(body: Uint8Array): string | undefined {
  const step = readStep(body);
  if (step === undefined || step.stepId === 0) return undefined;
  if (WAITS.has(step.stepType)) return entryKeyOfWait(step.stepId);
  return step.stepType === 'Invoke' ? entryKeyOfInvocation(step.stepId) : undefined;
}
