/**
 * The endpoint of a recorded run: accepts or refuses messages, and continues workflow runs like a client library, but with so
 * little work that the disk is the bottleneck, not this process. Reports everything that the server acknowledges to it.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { type Client, messageIdOf } from '../crash/client.ts';
import { listen } from '../support/listen.ts';

/** What a run does: its payload. */
export const PROGRAMS = ['steps', 'waits', 'calls', 'invokes', 'fails'] as const;
export type Program = (typeof PROGRAMS)[number];

const STEPS = 3;
const NON_RETRYABLE = { status: 489, headers: { 'Upstash-NonRetryable-Error': 'true' } };

export interface Endpoint {
  url: string;
  /** Publishes nothing before this. */
  connect(client: Client, acknowledged: (id: string) => void): void;
  /** What the server did not accept of runs: nothing, if all is well. */
  refusals: readonly string[];
  /** Begins a run of `program`. Answers what was acknowledged: the id of its first message. */
  trigger(client: Client, runId: string, program: Program): Promise<string>;
  close(): Promise<void>;
}

export async function openEndpoint(): Promise<Endpoint> {
  const refusals: string[] = [];
  let server: { client: Client; acknowledged: (id: string) => void } | undefined;

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await text(request);
    if (request.url !== '/run') return void response.writeHead(request.url === '/ok' ? 200 : 500).end();
    const runId = String(request.headers['upstash-workflow-runid']);
    const { status, headers } = await moveOn(runId, body, request.headers['upstash-workflow-callback'] !== undefined);
    response.writeHead(status, headers).end();
  }

  async function moveOn(
    runId: string,
    body: string,
    isCallback: boolean,
  ): Promise<{ status: number; headers?: Record<string, string> }> {
    // What a call was answered becomes its step.
    if (isCallback) return publish(runId, step(1, 'Call'));
    const [payload, ...entries] = JSON.parse(body) as { body: string; callType: string }[];
    const done = entries.filter(({ callType }) => callType === 'step').length;
    switch (Buffer.from(payload?.body ?? '', 'base64').toString() as Program) {
      case 'steps':
        return done < STEPS ? publish(runId, step(done + 1, 'Run')) : end(runId);
      case 'waits':
        return done < 1 ? wait(runId) : end(runId);
      case 'calls':
        return done < 1 ? publish(runId, 'hello', callHeaders(runId)) : end(runId);
      case 'invokes':
        return done < 1 ? publish(runId, invocation(runId), invokeHeaders(runId)) : end(runId);
      case 'fails':
        return NON_RETRYABLE;
    }
  }

  function publish(runId: string, body: string, headers = stepHeaders(runId)): Promise<{ status: number }> {
    const destination = headers['Upstash-Workflow-CallType'] === 'toCallback' ? `${url}/ok` : `${url}/run`;
    return ask('POST', `/v2/publish/${destination}`, headers, body);
  }

  function wait(runId: string): Promise<{ status: number }> {
    const timeoutHeaders = Object.fromEntries(
      Object.entries(stepHeaders(runId)).map(([name, value]) => [name, [value]]),
    );
    const body = {
      url: `${url}/run`,
      timeout: '1h',
      timeoutUrl: `${url}/run`,
      timeoutHeaders,
      step: JSON.parse(step(1, 'Wait')),
    };
    return ask('POST', `/v2/wait/${eventOf(runId)}`, stepHeaders(runId), JSON.stringify(body));
  }

  /** The run itself is what is acknowledged. */
  function end(runId: string): Promise<{ status: number }> {
    return ask('DELETE', `/v2/workflows/runs/${runId}?cancel=false`, {}, '"done"', () => runId);
  }

  async function ask(
    method: 'POST' | 'DELETE',
    path: string,
    headers: Record<string, string>,
    body: string,
    idOf: (json: unknown) => string = messageIdOf,
  ): Promise<{ status: number }> {
    if (server === undefined) return { status: 503 };
    const reply = await server.client.call(method, path, headers, body);
    if (reply.kind === 'ok') server.acknowledged(idOf(reply.json));
    if (reply.kind === 'refused') refusals.push(`${method} ${path}: ${JSON.stringify(reply)}`);
    return { status: reply.kind === 'ok' ? 200 : 500 };
  }

  function stepHeaders(runId: string): Record<string, string> {
    return {
      'content-type': 'application/json',
      'Upstash-Method': 'POST',
      'Upstash-Workflow-Init': 'false',
      'Upstash-Workflow-RunId': runId,
      'Upstash-Workflow-Url': `${url}/run`,
      'Upstash-Workflow-CallType': 'step',
      'Upstash-Forward-Upstash-Workflow-Sdk-Version': '1',
      'Upstash-Feature-Set': 'LazyFetch,InitialBody,WF_TriggerOnConfig',
    };
  }

  function triggerHeaders(runId: string): Record<string, string> {
    const told = { 'Upstash-Failure-Callback': `${url}/ok` };
    return { ...stepHeaders(runId), ...told, 'Upstash-Workflow-Init': 'true' };
  }

  function callHeaders(runId: string): Record<string, string> {
    const { 'Upstash-Forward-Upstash-Workflow-Sdk-Version': _, ...headers } = stepHeaders(runId);
    return {
      ...headers,
      'Upstash-Workflow-CallType': 'toCallback',
      'Upstash-Feature-Set': 'WF_NoDelete,InitialBody',
      'Upstash-Callback': `${url}/run`,
      'Upstash-Callback-Workflow-RunId': runId,
      'Upstash-Callback-Workflow-CallType': 'fromCallback',
      'Upstash-Callback-Workflow-Init': 'false',
      'Upstash-Callback-Workflow-Url': `${url}/run`,
      'Upstash-Callback-Feature-Set': 'LazyFetch,InitialBody,WF_TriggerOnConfig',
      'Upstash-Callback-Forward-Upstash-Workflow-Callback': 'true',
      'Upstash-Callback-Forward-Upstash-Workflow-StepId': '1',
    };
  }

  function invokeHeaders(runId: string): Record<string, string> {
    return { ...triggerHeaders(`${runId}-child`), 'Upstash-Workflow-Invoke': 'true' };
  }

  function invocation(runId: string): string {
    const headers = Object.fromEntries(Object.entries(stepHeaders(runId)).map(([name, value]) => [name, [value]]));
    const child: Program = 'steps';
    return JSON.stringify({
      body: child,
      headers,
      workflowRunId: runId,
      workflowUrl: `${url}/run`,
      step: JSON.parse(step(1, 'Invoke')),
    });
  }

  const listener = createServer((request, response) => {
    // A killed server cuts its requests.
    answer(request, response).catch(() => response.destroy());
  });
  const url = await listen(listener);
  return {
    url,
    refusals,
    connect: (client, acknowledged) => {
      server = { client, acknowledged };
    },
    async trigger(client, runId, program) {
      const reply = await client.call('POST', `/v2/publish/${url}/run`, triggerHeaders(runId), program);
      if (reply.kind !== 'ok') throw new Error(`a trigger was not accepted: ${JSON.stringify(reply)}`);
      return messageIdOf(reply.json);
    },
    close: () =>
      new Promise((resolve) => {
        listener.close(() => resolve());
        listener.closeAllConnections();
      }),
  };
}

/** The event that a run waits for. */
export function eventOf(runId: string): string {
  return `event-${runId}`;
}

function step(stepId: number, stepType: string): string {
  return JSON.stringify({ stepId, stepName: 'step', stepType, concurrent: 1 });
}
