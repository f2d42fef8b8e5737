/**
 * Simulates an endpoint with the client library: sends the requests of the newest releases with the same headers
 * (contract W 4.3, 14), and parses deliveries. No request is sent automatically.
 */
import { eventually } from '../../support/eventually.ts';
import type { Received, Reply } from './endpoint.ts';
import type { ApiResponse, Json, Subject } from './subject.ts';

export type Headers = Record<string, string>;

/** The features of the library's releases since 1.0, and of earlier releases. */
export const FEATURES = 'LazyFetch,InitialBody,WF_DetectTrigger,WF_TriggerOnConfig';
export const OLD_FEATURES = 'LazyFetch,InitialBody';

/** The headers of every response of the library. */
const LIBRARY = { 'Upstash-Workflow-Sdk-Version': '1', 'Upstash-workflow-sdk': 'v1.3.3' };

/** The response of an endpoint that has published a step, or has nothing to do. */
export const DONE: Reply = replyOf(200, '{"workflowRunId":"wfr_a","finishCondition":"success"}');

/** The response of an endpoint whose step threw. */
export const BROKEN: Reply = replyOf(500, '{"error":"Error","message":"broken","stack":""}');

export function replyOf(status: number, body: string, headers: Headers = {}): Reply {
  return { status, headers: { ...LIBRARY, ...headers }, body };
}

export const OVER = 'can not append to a a cancelled workflow';

export interface Trigger {
  /** Default: `wfr_<path>`. */
  id?: string;
  /** Default: a path that has received no request yet, and responds like the library. */
  path?: string;
  payload?: string;
  features?: string;
  /** Headers of the user, which are forwarded to the workflow and to the failure callback. */
  user?: Headers;
  /** The URL of the failure callback. Default: the workflow itself. `null`: no failure callback. */
  failureUrl?: string | null;
  /** Further control headers. */
  headers?: Headers;
}

/** An entry of a delivered journal. */
export interface Entry {
  messageId: string;
  callType: string;
  /** Decoded. */
  text: string;
}

/** A delivery to a workflow. */
export interface Delivery extends Received {
  messageId: string;
  /** The journal in the body; empty if the body is not a journal. */
  entries: Entry[];
  /** The entries' texts. */
  texts: string[];
  /** The last entry, parsed. */
  step: Json;
}

export class Run {
  readonly server: Subject;
  readonly id: string;
  readonly path: string;
  readonly features: string;
  /** Id of the first message. */
  readonly messageId: string;

  constructor(server: Subject, { id, path, features }: Pick<Run, 'id' | 'path' | 'features'>, messageId: string) {
    this.server = server;
    this.id = id;
    this.path = path;
    this.features = features;
    this.messageId = messageId;
  }

  get url(): string {
    return this.server.destination(this.path);
  }

  /** The nth request to the workflow, from 1. */
  async delivery(nth: number): Promise<Delivery> {
    return deliveryOf(await this.server.endpoint.arrival(this.path, nth));
  }

  /** Like `delivery`, but resolves once no other delivery is due. */
  async lastDelivery(nth: number): Promise<Delivery> {
    const delivery = await this.delivery(nth);
    await this.server.quiet();
    const arrived = this.server.endpoint.to(this.path).length;
    if (arrived !== nth) throw new Error(`${arrived} requests to ${this.path} instead of ${nth}`);
    return delivery;
  }

  /** The control headers of all messages that the endpoint publishes into the run. */
  headers(): Headers {
    return stepHeaders(this);
  }

  /** Publishes the result or the request of a step, and returns the message's id. */
  async step(step: Json, headers: Headers = {}): Promise<string> {
    return (await this.steps([step], headers))[0].messageId;
  }

  /** Publishes several steps at once, as for parallel steps, and returns the parsed body. */
  async steps(steps: Json[], headers: Headers = {}): Promise<Json> {
    return this.server.post('/v2/batch', this.stepItems(steps, headers));
  }

  stepItems(steps: Json[], headers: Headers = {}): Json[] {
    return steps.map((step) => ({
      destination: this.url,
      headers: { ...this.headers(), ...headers },
      body: JSON.stringify(step),
    }));
  }

  /** The batch item that the endpoint publishes to call `destination`. */
  callItem(destination: string, call: CallOptions = {}): Json {
    const { body, headers } = call;
    return {
      destination,
      headers: { ...callHeaders(this, call), ...headers },
      ...(body !== undefined && { body }),
    };
  }

  async call(to: string, call: CallOptions = {}): Promise<string> {
    return (await this.server.post('/v2/batch', [this.callItem(this.server.destination(to), call)]))[0].messageId;
  }

  async wait(eventId: string, options: WaitOptions = {}): Promise<ApiResponse> {
    return this.server.ask('POST', `/v2/wait/${eventId}`, this.waitQuestion(options));
  }

  waitQuestion({ step = waitStep(1), timeout = '7d', timeoutPath = this.path, headers = {} }: WaitOptions = {}): {
    headers: Headers;
    body: string;
  } {
    const request = {
      ...this.headers(),
      'Upstash-Workflow-CallType': 'step',
      ...headers,
    };
    const body = {
      url: this.url,
      timeout,
      timeoutUrl: this.server.destination(timeoutPath),
      timeoutHeaders: listed({
        'Upstash-Workflow-Init': 'false',
        'Upstash-Workflow-RunId': this.id,
        'Upstash-Workflow-Runid': this.id,
        'Upstash-Workflow-Url': this.url,
        'Upstash-Forward-Upstash-Workflow-Sdk-Version': '1',
        'Upstash-Feature-Set': this.features,
        'Upstash-Workflow-CallType': 'step',
        ...headers,
      }),
      step,
    };
    return { headers: request, body: JSON.stringify(body) };
  }

  /** Invokes the workflow at `path`, waits until its run has ended, and returns the run. */
  async invoke(child: Invoked = {}): Promise<Run> {
    const { server } = this;
    const started = prepared(server, child);
    const { destination, headers, body } = await this.invokeItem({ ...child, ...started });
    const { messageId } = await server.post(`/v2/publish/${destination}`, undefined, { headers, body });
    return new Run(server, started, messageId);
  }

  /** The request that the endpoint publishes to invoke a run. */
  async invokeItem(child: Invoked): Promise<{ destination: string; headers: Headers; body: string }> {
    const { server } = this;
    const started = prepared(server, child);
    const { headers, payload } = triggerHeaders(server, started, child);
    const { stepId = 1, createdAtMs = await this.createdAtMs() } = child;
    const body = {
      ...(payload !== undefined && { body: payload }),
      headers: listed({
        'Upstash-Workflow-Init': 'false',
        'Upstash-Workflow-RunId': this.id,
        'Upstash-Workflow-Runid': this.id,
        'Upstash-Workflow-Url': this.url,
        'Upstash-Feature-Set': this.features,
        'Upstash-Forward-Upstash-Workflow-Sdk-Version': '1',
        'content-type': 'application/json',
      }),
      workflowRunId: this.id,
      workflowRunCreatedAt: createdAtMs,
      workflowUrl: this.url,
      step: invokeStep(stepId),
    };
    const invoking = {
      ...headers,
      'upstash-workflow-invoke': 'true',
      'upstash-forward-upstash-workflow-invoke-count': '1',
      ...child.headers,
    };
    return { destination: server.destination(started.path), headers: invoking, body: JSON.stringify(body) };
  }

  /** Reports the successful end of the run, like the library. */
  finish(result?: string): Promise<ApiResponse> {
    const body = result === undefined ? {} : { body: result };
    return this.server.ask('DELETE', `/v2/workflows/runs/${this.id}?cancel=false`, body);
  }

  cancel(): Promise<ApiResponse> {
    return this.server.ask('DELETE', `/v2/workflows/runs/${this.id}`);
  }

  /** Fetches the journal of the active run, like the library. */
  async journal(): Promise<Entry[]> {
    return entriesOf(await this.server.get(`/v2/workflows/runs/${this.id}`));
  }

  /** The time in the run's first delivery. */
  async createdAtMs(): Promise<number> {
    return Number((await this.delivery(1)).headers['upstash-workflow-createdat']);
  }

  /** The latest run of the id in the grouped view. */
  async shown(): Promise<Json> {
    return (await this.server.get(`/v2/workflows/logs?workflowRunId=${this.id}`)).runs[0];
  }

  /** The run's events in the flat view, oldest first. Reads all pages, since large bodies end a page early. */
  async events(): Promise<Json[]> {
    const newestFirst: Json[] = [];
    let next = '';
    do {
      const page = await this.server.get(`/v2/workflows/messageLogs?workflowRunId=${this.id}${next}`);
      newestFirst.push(...page.events);
      next = page.cursor ? `&cursor=${page.cursor}` : '';
    } while (next !== '');
    return newestFirst.reverse();
  }

  /** The states of the run's events, oldest first. */
  async states(): Promise<string[]> {
    return (await this.events()).map(({ state }) => state);
  }

  /** Resolves to the run in the grouped view once the run is in `state`. */
  reached(state: string): Promise<Json> {
    return eventually(`${state} of ${this.id}`, async () => {
      const run = await this.shown();
      return run?.workflowState === state && run;
    });
  }

  /** Resolves to the run's `nth` event (from 1) of a state once the event is logged. */
  logged(state: string, nth = 1): Promise<Json> {
    return eventually(`event ${nth} ${state} of ${this.id}`, async () => {
      return (await this.events()).filter((event) => event.state === state)[nth - 1];
    });
  }

  /** Resolves to the run in the grouped view once the run's failure callback is in `state`. */
  told(state: string): Promise<Json> {
    return eventually(`${state} of the failure callback of ${this.id}`, async () => {
      const run = await this.shown();
      return run?.failureFunction?.state === state && run;
    });
  }

  /** Resolves to the run's DLQ entry once the run has failed. */
  buried(): Promise<Json> {
    return eventually(`the DLQ entry of ${this.id}`, async () => {
      return (await this.server.get(`/v2/workflows/dlq?workflowRunId=${this.id}`)).messages[0];
    });
  }
}

type Invoked = Trigger & { createdAtMs?: number; stepId?: number };

export interface CallOptions {
  stepId?: number;
  method?: string;
  body?: string;
  headers?: Headers;
}

export interface WaitOptions {
  step?: Json;
  timeout?: string;
  timeoutPath?: string;
  headers?: Headers;
}

type Started = Pick<Run, 'id' | 'path' | 'features'>;

function prepared(server: Subject, { id, path, features = FEATURES }: Trigger): Started {
  const to = path ?? server.endpoint.newPath();
  if (path === undefined) server.endpoint.replies(to, DONE);
  return { id: id ?? `wfr_${to.slice(1)}`, path: to, features };
}

/** The batch item with which the library starts a run. */
export function triggerItem(server: Subject, trigger: Trigger): Json {
  const started = prepared(server, trigger);
  const { headers, payload } = triggerHeaders(server, started, trigger);
  const item = { destination: server.destination(started.path), headers: { ...headers, ...trigger.headers } };
  return payload === undefined ? item : { ...item, body: payload };
}

/** Starts a run like the library, with a batch of one item. */
export async function start(server: Subject, trigger: Trigger = {}): Promise<Run> {
  const started = prepared(server, trigger);
  const [{ messageId }] = await server.post('/v2/batch', [triggerItem(server, { ...trigger, ...started })]);
  return new Run(server, started, messageId);
}

/** Like `start`, but resolves once the first delivery has arrived. */
export async function startAndDeliver(server: Subject, trigger: Trigger = {}): Promise<Run> {
  const run = await start(server, trigger);
  await run.delivery(1);
  return run;
}

/** Starts a run whose only attempt fails. Without `path`, later requests to the endpoint get successful responses. */
export async function fail(server: Subject, trigger: Trigger = {}): Promise<Run> {
  const path = trigger.path ?? server.endpoint.newPath();
  if (trigger.path === undefined) server.endpoint.replies(path, BROKEN, DONE);
  const run = await start(server, { ...trigger, path, headers: { 'upstash-retries': '0', ...trigger.headers } });
  await run.logged('RUN_FAILED');
  return run;
}

function triggerHeaders(
  server: Subject,
  { id, path, features }: Started,
  { payload = '{"a":1}', user = {}, failureUrl }: Trigger,
): { headers: Headers; payload: string | undefined } {
  const url = server.destination(path);
  const headers: Headers = {
    'upstash-workflow-init': 'true',
    'upstash-workflow-runid': id,
    'upstash-workflow-url': url,
    'upstash-workflow-sdk-version': '1',
    'upstash-forward-upstash-workflow-sdk-version': '1',
    'upstash-feature-set': features,
    'upstash-method': 'POST',
    'content-type': 'application/json',
    ...prefixed('upstash-forward-', user),
    ...TELEMETRY,
  };
  const group: Headers = {
    'upstash-failure-callback': failureUrl ?? url,
    'upstash-failure-callback-forward-upstash-workflow-is-failure': 'true',
    'upstash-failure-callback-forward-upstash-workflow-failure-callback': 'true',
    ...prefixed('upstash-failure-callback-forward-', user),
    'upstash-failure-callback-workflow-runid': id,
    'upstash-failure-callback-workflow-init': 'false',
    'upstash-failure-callback-workflow-url': url,
    'upstash-failure-callback-workflow-calltype': 'failureCall',
    'upstash-failure-callback-feature-set': features,
  };
  return { headers: failureUrl === null ? headers : { ...headers, ...group }, payload: payload || undefined };
}

const TELEMETRY: Headers = {
  'upstash-telemetry-sdk': '@upstash/workflow@1.3.3',
  'upstash-telemetry-framework': 'nextjs',
  'upstash-telemetry-runtime': 'node@24',
};

function stepHeaders({ id, url, features }: Pick<Run, 'id' | 'url' | 'features'>): Headers {
  return {
    'upstash-workflow-init': 'false',
    'upstash-workflow-runid': id,
    'upstash-workflow-url': url,
    'upstash-workflow-sdk-version': '1',
    'upstash-forward-upstash-workflow-sdk-version': '1',
    'upstash-feature-set': features,
    'content-type': 'application/json',
    'upstash-method': 'POST',
    ...TELEMETRY,
  };
}

function callHeaders(
  { id, url, features }: Pick<Run, 'id' | 'url' | 'features'>,
  { stepId = 1, method = 'GET' }: CallOptions,
): Headers {
  return {
    'upstash-method': method,
    'upstash-workflow-calltype': 'toCallback',
    'upstash-workflow-init': 'false',
    'upstash-workflow-runid': id,
    'upstash-workflow-url': url,
    'upstash-workflow-sdk-version': '1',
    'upstash-feature-set': 'WF_NoDelete,InitialBody',
    'upstash-retries': '0',
    'content-type': 'application/json',
    ...TELEMETRY,
    'upstash-callback': url,
    'upstash-callback-workflow-runid': id,
    'upstash-callback-workflow-calltype': 'fromCallback',
    'upstash-callback-workflow-init': 'false',
    'upstash-callback-workflow-url': url,
    'upstash-callback-feature-set': features,
    'upstash-callback-forward-upstash-workflow-callback': 'true',
    'upstash-callback-forward-upstash-workflow-stepid': String(stepId),
    'upstash-callback-forward-upstash-workflow-stepname': `call-${stepId}`,
    'upstash-callback-forward-upstash-workflow-steptype': 'Call',
    'upstash-callback-forward-upstash-workflow-concurrent': '1',
    'upstash-callback-forward-upstash-workflow-contenttype': 'application/json',
  };
}

export function runStep(stepId: number, out = `"${stepId}"`): Json {
  return { stepId, stepName: `run-${stepId}`, stepType: 'Run', out, concurrent: 1 };
}

export function waitStep(stepId: number): Json {
  return { stepId, stepType: 'Wait', stepName: `wait-${stepId}`, concurrent: 1 };
}

export function invokeStep(stepId: number): Json {
  return { stepId, stepName: `invoke-${stepId}`, stepType: 'Invoke', concurrent: 1 };
}

/** The plans of `count` parallel steps with consecutive numbers from `firstStep`. */
export function plans(firstStep: number, count: number): Json[] {
  return Array.from({ length: count }, (_, index) => ({
    stepId: 0,
    stepName: `run-${firstStep + index}`,
    stepType: 'Run',
    concurrent: count,
    targetStep: firstStep + index,
  }));
}

export function deliveryOf(received: Received): Delivery {
  const text = received.body.toString();
  const entries = text.startsWith('[') ? entriesOf(JSON.parse(text)) : [];
  const last = entries.length > 1 ? entries.at(-1)?.text : undefined;
  return {
    ...received,
    messageId: String(received.headers['upstash-message-id'] ?? received.headers['waypost-message-id']),
    entries,
    texts: entries.map(({ text }) => text),
    step: last === undefined ? undefined : JSON.parse(last),
  };
}

function entriesOf(journal: Json[]): Entry[] {
  return journal.map(({ messageId, callType, body }) => ({ messageId, callType, text: fromBase64(body) }));
}

export function base64(text: string): string {
  return Buffer.from(text).toString('base64');
}

export function fromBase64(text: string): string {
  return Buffer.from(text, 'base64').toString();
}

/** Adds `prefix` to the name of each header. */
export function prefixed(prefix: string, headers: Headers): Headers {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [`${prefix}${name}`, value]));
}

/** Converts headers to the form that JSON bodies use, with a list of values for each name. */
function listed(headers: Headers): Record<string, string[]> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, [value]]));
}
