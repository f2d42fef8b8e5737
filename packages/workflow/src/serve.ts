/** Serves a workflow: accepts a request from the server, continues the run, and responds (contract W 9, 10). */
import { continueRun } from './continuation.ts';
import {
  type Delivery,
  fetchEntries,
  handoverOf,
  hasRunHeaders,
  reachesStep,
  rejectUnauthenticated,
  userHeadersOf,
  type Workflow,
} from './delivery.ts';
import { WorkflowError } from './errors.ts';
import { handleFailure } from './failure.ts';
import { startHeaders } from './headers.ts';
import { type EndpointRequest, type Handler, type Reply, respondWeb } from './http.ts';
import { runIdOf } from './ids.ts';
import { readJournal } from './journal.ts';
import { INFO, loggingMiddleware, Middlewares } from './middleware.ts';
import { endpointOf, lingerMsOf } from './options.ts';
import { errorResponse, finishResponse } from './responses.ts';
import { HEADER, inBothDialects, PROTOCOL_VERSION } from './wire.ts';
import type { RouteFunction, WorkflowServeOptions } from './workflow.ts';

/** Serves a workflow at a URL, in frameworks that use the web's `Request` and `Response`. */
export function serve<
  TInitialPayload = unknown,
  TRequest extends Request = Request,
  TResponse extends Response = Response,
  TResult = unknown,
>(
  routeFunction: RouteFunction<TInitialPayload, TResult>,
  options?: WorkflowServeOptions<TInitialPayload, TResult>,
): { handler: (request: TRequest) => Promise<TResponse> } {
  const handle = handlerOf(routeFunction, options);
  return { handler: (request) => respondWeb(handle, request) as Promise<TResponse> };
}

/** Serves a workflow at a URL, for the adapter of any framework. */
export function handlerOf<TInitialPayload, TResult>(
  routeFunction: RouteFunction<TInitialPayload, TResult>,
  options: WorkflowServeOptions<TInitialPayload, TResult> = {},
  { useJSONContent = false }: { useJSONContent?: boolean | undefined } = {},
): Handler {
  const workflow = { routeFunction, options, useJSONContent, lingerMs: lingerMsOf(options) };
  return (incoming) => handle(incoming, workflow);
}

async function handle<TInitialPayload, TResult>(
  incoming: EndpointRequest,
  workflow: Workflow<TInitialPayload, TResult>,
): Promise<Reply> {
  const { options } = workflow;
  const middlewares = new Middlewares([
    ...(options.middlewares ?? []),
    ...(options.verbose ? [loggingMiddleware] : []),
  ]);
  try {
    return await deliver(incoming, workflow, middlewares);
  } catch (error) {
    await middlewares.debug('onError', { error: error instanceof Error ? error : new Error(String(error)) });
    return errorResponse(error);
  }
}

async function deliver<TInitialPayload, TResult>(
  incoming: EndpointRequest,
  workflow: Workflow<TInitialPayload, TResult>,
  middlewares: Middlewares,
): Promise<Reply> {
  await middlewares.info(INFO.received);
  const { url, env } = incoming;
  const headers = new Headers([...inBothDialects(incoming.headers)]);
  const endpoint = endpointOf(url, env ? { env, ...workflow.options } : workflow.options);
  const body = await incoming.text();
  await endpoint.verify(body, headers.get(HEADER.signature));
  const isFailure = headers.get(HEADER.failureCallback) !== null || headers.get(HEADER.isFailure) === 'true';
  const isUnknown = headers.get(HEADER.unknownSdk) !== null;
  const version = headers.get(HEADER.sdkVersion);
  const isCallResult = headers.get(HEADER.callback) !== null;
  if (version !== null && version !== PROTOCOL_VERSION)
    throw new WorkflowError(
      `The server speaks version ${version} of the protocol; this library speaks ${PROTOCOL_VERSION}.`,
    );
  const isPlain = version === null && !isUnknown && !isFailure && !isCallResult;
  const workflowRunId = isPlain ? runIdOf() : (headers.get(HEADER.runId) ?? '');
  if (isCallResult && !hasRunHeaders(headers)) return rejectUnauthenticated('no-workflow-id', middlewares);
  // A failure callback also names the run in its body. `handleFailure` rejects an unauthorized callback with another
  // error.
  if (!workflowRunId && !isFailure) throw new WorkflowError(`The delivery has no ${HEADER.runId}.`);
  middlewares.workflowRunId = workflowRunId;
  const delivery: Delivery<TInitialPayload> = {
    endpoint,
    headers,
    body,
    middlewares,
    facts: {
      workflowRunId,
      workflowRunCreatedAt: Number(headers.get(HEADER.createdAt)),
      url: endpoint.url,
      headers: userHeadersOf(headers),
      env: endpoint.env,
      labels: headers.get(HEADER.label)?.split(',') ?? [],
      retried: Number(headers.get(HEADER.retried) ?? 0),
      invokeCount: Number(headers.get(HEADER.invokeCount) ?? 0),
      qstashClient: endpoint.client,
    },
  };
  // `continueRun` reports deliveries that continue a run.
  if (isFailure || isPlain || isUnknown) await middlewares.info(INFO.identified(isPlain, isUnknown));
  if (isFailure) return handleFailure(workflow, delivery);
  if (isPlain) return startRun(workflow, delivery, body, false);
  if (!isUnknown) return continueRun(workflow, delivery);
  const entries = handoverOf(delivery).entries ?? (await fetchEntries(delivery));
  if (!entries) return finishResponse(workflowRunId, 'workflow-already-ended');
  return startRun(workflow, delivery, readJournal(entries).initialPayload, true);
}

/** Starts a run for a plain request, or for a delivery from a server that did not know yet that this library is used. */
async function startRun<TInitialPayload, TResult>(
  workflow: Workflow<TInitialPayload, TResult>,
  { endpoint, facts, headers, middlewares }: Delivery<TInitialPayload>,
  body: string,
  isUnknown: boolean,
): Promise<Reply> {
  const { workflowRunId } = facts;
  if (!(await reachesStep(workflow, { endpoint, facts }, () => endpoint.payloadOf(body))))
    return rejectUnauthenticated(isUnknown ? workflowRunId : 'no-workflow-id', middlewares);
  const contentType = workflow.useJSONContent ? 'application/json' : headers.get('content-type');
  await endpoint.server.json({
    method: 'POST',
    path: '/v2/batch',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify([
      {
        destination: facts.url,
        headers: endpoint.server.headersWith({
          ...startHeaders({
            runId: workflowRunId,
            url: facts.url,
            userHeaders: facts.headers,
            invokeCount: facts.invokeCount,
            ...(facts.labels.length > 0 && { label: facts.labels }),
            ...(contentType && { contentType }),
          }),
          ...(isUnknown && { [HEADER.triggerBySdk]: 'true' }),
        }),
        body,
      },
    ]),
    isRepeatable: true,
  });
  await middlewares.info(INFO.started(facts.url));
  await middlewares.info(INFO.executed);
  return finishResponse(workflowRunId, 'success');
}
