/** Describes one request from the server in parsed form, and defines the functions that every request needs. */
import type { Handover } from './call.ts';
import { CallContext, StepFound } from './context.ts';
import { WorkflowError, WorkflowNonRetryableError, WorkflowRetryAfterError } from './errors.ts';
import type { Reply } from './http.ts';
import type { Middlewares } from './middleware.ts';
import type { Endpoint } from './options.ts';
import { AUTHENTICATION_FAILED, finishResponse } from './responses.ts';
import type { RawStep } from './types.ts';
import { HEADER } from './wire.ts';
import type { RouteFunction, RunFacts, WorkflowServeOptions } from './workflow.ts';

export interface Workflow<TInitialPayload, TResult> {
  routeFunction: RouteFunction<TInitialPayload, TResult>;
  options: WorkflowServeOptions<TInitialPayload, TResult>;
  useJSONContent: boolean;
  /** How long a call stays open without work. */
  lingerMs: number;
}

/** A parsed request from the server. */
export interface Delivery<TInitialPayload> {
  endpoint: Endpoint<TInitialPayload>;
  headers: Headers;
  body: string;
  /** The data of a context, except the payload. */
  facts: Omit<RunFacts<TInitialPayload>, 'requestPayload'>;
  middlewares: Middlewares;
}

/** Whether the workflow reaches a step with the payload. A workflow that returns earlier has rejected the request. */
export async function reachesStep<TInitialPayload, TResult>(
  { routeFunction }: Workflow<TInitialPayload, TResult>,
  { endpoint, facts }: Pick<Delivery<TInitialPayload>, 'endpoint' | 'facts'>,
  payload: () => TInitialPayload,
): Promise<boolean> {
  try {
    await routeFunction(new CallContext({ ...facts, requestPayload: payload() }, endpoint.server));
    return false;
  } catch (error) {
    const isExpected =
      error instanceof StepFound ||
      error instanceof WorkflowNonRetryableError ||
      error instanceof WorkflowRetryAfterError;
    if (!isExpected) throw error;
    return true;
  }
}

/** The delivery, in the form of a message that is handed to an open call. */
export function handoverOf<T>({ headers, facts, body }: Delivery<T>): Handover {
  const messageId = headers.get(HEADER.messageId) ?? '';
  const handover = { messageId, token: headers.get(HEADER.checkpoint) ?? '', retried: facts.retried };
  if (headers.get(HEADER.callback) === null)
    return { ...handover, ...(body !== '' && { entries: JSON.parse(body) as RawStep[] }) };
  const asLists = Object.fromEntries([...headers].map(([name, value]) => [name, [value]]));
  return { ...handover, headers: asLists, ...(body !== '' && { body }) };
}

/** Returns the current journal of the run, or undefined if the run has ended. */
export async function fetchEntries<T>(
  { endpoint: { server }, facts: { workflowRunId }, headers }: Delivery<T>,
  token = headers.get(HEADER.checkpoint) ?? '',
): Promise<RawStep[] | undefined> {
  try {
    const path = `/v2/workflows/runs/${encodeURIComponent(workflowRunId)}`;
    return await server.json<RawStep[]>({ method: 'GET', path, isRepeatable: true, ...(token && { token }) });
  } catch (error) {
    if (error instanceof WorkflowError && error.status === 404) return undefined;
    throw error;
  }
}

/**
 * Whether the request has the headers that every delivery of a run has. A plain request may have other headers of a
 * delivery.
 */
export function hasRunHeaders(headers: Headers): boolean {
  return headers.get(HEADER.runId) !== null && headers.get(HEADER.checkpoint) !== null;
}

/** The token of the delivered message. */
export function tokenOf(headers: Headers): string {
  const token = headers.get(HEADER.checkpoint);
  if (token) return token;
  throw new WorkflowError('The server offers no checkpoints. @waypost/workflow needs a Waypost server.');
}

/** Headers that proxies add, and headers that describe the delivery. */
const NOT_USER_HEADER =
  /^(upstash-region$|upstash-workflow-|waypost-workflow-|x-vercel-|x-forwarded-|cf-connecting-ip$|cdn-loop$|cf-ew-via$|cf-ray$|render-proxy-ttl$)/;

/** The headers that the user gave when the run started. */
export function userHeadersOf(headers: Headers): Headers {
  return new Headers([...headers].filter(([name]) => !NOT_USER_HEADER.test(name)));
}

/** The response when the workflow returned before its first step, or the request is not from the server. */
export async function rejectUnauthenticated(workflowRunId: string, middlewares: Middlewares): Promise<Reply> {
  await middlewares.debug('onError', { error: new Error(AUTHENTICATION_FAILED) });
  return finishResponse(workflowRunId, 'auth-fail');
}
