/**
 * Defines the kinds of steps: the journal entries of each kind, and how a result is read from them (contract W 8.2, 14).
 */
import { decodeBase64 } from './base64.ts';
import type { Append, Publish } from './call.ts';
import { durationOf } from './durations.ts';
import { WorkflowError } from './errors.ts';
import { pairsOf } from './http.ts';
import type {
  CallResponse,
  InvokeStepResponse,
  NotifyStepResponse,
  Step,
  StepType,
  WaitForWebhookResponse,
  WaitStepResponse,
} from './types.ts';

/** A step that the workflow has reached. */
export interface LazyStep<T = unknown> {
  name: string;
  type: StepType;
  /** Additional members of the step's plan and result. */
  members?: Pick<Step, 'sleepFor' | 'sleepUntil' | 'waitEventId' | 'timeout'>;
  /**
   * Executes the step within the call and returns its result as JSON text. If absent, the server delivers the result
   * later.
   */
  execute?(): Promise<string | undefined>;
  /**
   * The entry that makes the server deliver the result. If absent, the server delivers the step itself when the step is
   * due.
   */
  request?(step: Step): Append;
  /** The value that the workflow receives for the result `step`. */
  read(step: Step): T;
}

/** Whether the result of the step may arrive within `ms`. */
export function mayArriveWithin({ members }: LazyStep, ms: number): boolean {
  const { sleepFor, sleepUntil } = members ?? {};
  if (sleepUntil !== undefined) return sleepUntil * 1_000 - Date.now() <= ms;
  return sleepFor === undefined || msOf(sleepFor) <= ms;
}

const UNITS_MS = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

function msOf(duration: number | string): number {
  if (typeof duration === 'number') return duration * 1_000;
  const parts = [...duration.matchAll(/(\d+)([smhd])/g)];
  return parts.reduce((sum, [, count, unit]) => sum + Number(count) * UNITS_MS[unit as keyof typeof UNITS_MS], 0);
}

/** The step's result; `concurrent` is the size of its group. */
export function resultOf(lazy: LazyStep, stepId: number, concurrent: number, out?: string): Step {
  const { name: stepName, type: stepType, members } = lazy;
  return { stepId, stepName, stepType, ...(out !== undefined && { out }), ...members, concurrent };
}

/** The entry that announces the step as a member of a group. */
export function planOf(lazy: LazyStep, targetStep: number, concurrent: number): Step {
  const { name: stepName, type: stepType, members } = lazy;
  return { stepId: 0, stepName, stepType, ...members, concurrent, targetStep };
}

/** `step` as an entry that the server delivers when the sleep of the step is over. */
export function delayedAppend(step: Step): Append {
  const { sleepFor, sleepUntil } = step;
  // Whole seconds, rounded down: the server adds the remaining fraction.
  if (sleepUntil !== undefined) return { step, notBefore: Math.floor(sleepUntil) };
  if (sleepFor !== undefined) return { step, delay: durationOf(sleepFor) };
  return { step };
}

export function runStep<T>(name: string, run: () => T | Promise<T>): LazyStep<T> {
  return { name, type: 'Run', execute: async () => JSON.stringify(await run()), read: (step) => parsed(step.out) as T };
}

export function sleepStep(
  name: string,
  type: 'SleepFor' | 'SleepUntil',
  members: Pick<Step, 'sleepFor' | 'sleepUntil'>,
): LazyStep<void> {
  return { name, type, members, read: () => undefined };
}

export function callStep<T>(name: string, publishOf: (step: Step) => Publish): LazyStep<CallResponse<T>> {
  return { name, type: 'Call', request: (step) => ({ call: publishOf(step) }), read: readCall };
}

export function invokeStep<T>(name: string, publishOf: (step: Step) => Publish): LazyStep<InvokeStepResponse<T>> {
  return {
    name,
    type: 'Invoke',
    request: (step) => ({ invoke: publishOf(step) }),
    read: (step) => {
      const result = JSON.parse(outOf(step)) as InvokeStepResponse<T>;
      return { ...result, body: parsed(result.body) as T };
    },
  };
}

export function notifyStep(name: string, notify: () => Promise<NotifyStepResponse>): LazyStep<NotifyStepResponse> {
  return {
    name,
    type: 'Notify',
    execute: async () => JSON.stringify(await notify()),
    read: (step) => {
      const result = JSON.parse(outOf(step)) as NotifyStepResponse;
      return { ...result, eventData: parsed(result.eventData) };
    },
  };
}

export function waitStep<T>(name: string, eventId: string, timeout: string): LazyStep<WaitStepResponse<T>> {
  return {
    ...waitingStep(name, 'Wait', eventId, timeout),
    read: ({ out, waitTimeout = false }) => ({
      eventData: (typeof out === 'string' && out !== '' ? parsed(decodeBase64(out)) : undefined) as T,
      timeout: waitTimeout,
    }),
  };
}

export function webhookStep(name: string, create: () => { webhookUrl: string; eventId: string }) {
  return { ...runStep(name, create), type: 'CreateWebhook' as const };
}

export function waitForWebhookStep(name: string, eventId: string, timeout: string): LazyStep<WaitForWebhookResponse> {
  return { ...waitingStep(name, 'WaitForWebhook', eventId, timeout), read: readWebhook };
}

function waitingStep(name: string, type: StepType, eventId: string, timeout: string): Omit<LazyStep, 'read'> {
  return {
    name,
    type,
    members: { waitEventId: eventId, timeout },
    request: ({ stepId, stepName, stepType, concurrent }) => ({
      wait: { eventId, timeout, step: { stepId, stepType, stepName, concurrent } },
    }),
  };
}

/** The response to a `context.call`. A textual body is decoded as UTF-8, since the journal has one character for each byte. */
function readCall<T>(step: Step): CallResponse<T> {
  const { status, header, body } = JSON.parse(outOf(step)) as CallResponse<string>;
  const type = new Headers(Object.entries(header).map(([name, values]) => [name, values.join(', ')])).get(
    'content-type',
  );
  const text = isTextual(type) ? utf8Of(body) : body;
  return { status, header, body: (isTextual(type) ? parsed(text) : text) as T };
}

const TEXTUAL =
  /^text\/|application\/(json|xml|javascript|x-www-form-urlencoded|xhtml\+xml|ld\+json|rss\+xml|atom\+xml)/;

function isTextual(contentType: string | null): boolean {
  return contentType !== null && TEXTUAL.test(contentType);
}

function utf8Of(body: string): string {
  return new TextDecoder().decode(Uint8Array.from(body, (character) => character.charCodeAt(0)));
}

/** A request to a webhook, as the server saved it; `body` is base64. */
interface WebhookRequest {
  method: string;
  header: Record<string, string[]>;
  body?: string;
  proto: string;
  host: string;
  url: string;
}

function readWebhook({ out }: Step): WaitForWebhookResponse {
  if (typeof out !== 'string') return { timeout: true, request: undefined };
  const { method, header, body, proto, host, url } = JSON.parse(decodeBase64(out)) as WebhookRequest;
  const mayHaveBody = method !== 'GET' && method !== 'HEAD';
  const request = new Request(`${proto}://${host}${url}`, {
    method,
    headers: pairsOf(header),
    ...(mayHaveBody && body !== undefined && { body: decodeBase64(body) }),
  });
  return { timeout: false, request };
}

function outOf({ out, stepName, stepType }: Step): string {
  if (typeof out === 'string') return out;
  throw new WorkflowError(`the result of the step '${stepName}' (${stepType}) is ${typeof out}, not a string`);
}

/** Parses JSON text; returns any other value unchanged. */
function parsed(out: unknown): unknown {
  if (typeof out !== 'string') return out;
  try {
    return JSON.parse(out);
  } catch {
    return out;
  }
}
