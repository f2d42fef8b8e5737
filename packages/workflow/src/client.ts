/** Starts and manages runs from any process: the client of `@upstash/workflow`. */
import { DLQ } from './dlq.ts';
import { durationOf } from './durations.ts';
import { cancelQueryOf, filled, type LogsFilter, pathOf, type RunSelection } from './filters.ts';
import { startHeaders } from './headers.ts';
import { runIdOf } from './ids.ts';
import type { WorkflowRunLogs } from './logs.ts';
import { environment, serverFromEnvironment } from './options.ts';
import { bodyMember, type Notification, type Server } from './server.ts';
import type { Duration, FlowControl, NotifyResponse, QStashClientExtraConfig, Waiter } from './types.ts';

export interface ClientConfig extends QStashClientExtraConfig {
  /** Default: QSTASH_URL. */
  baseUrl?: string;
  /** Default: QSTASH_TOKEN. */
  token?: string;
}

export interface TriggerOptions {
  url: string;
  /** Text, or a value that is sent as JSON. */
  body?: unknown;
  headers?: Record<string, string>;
  workflowRunId?: string;
  retries?: number;
  /** An expression that gives milliseconds. */
  retryDelay?: string;
  flowControl?: FlowControl;
  /** A number of seconds, or a duration. */
  delay?: number | Duration;
  /** Unix time in seconds. */
  notBefore?: number;
  label?: string | string[];
  disableTelemetry?: boolean;
  failureUrl?: string;
  redact?: { body?: true; header?: true | string[] };
}

export class Client {
  readonly #server: Server;

  constructor({ baseUrl, token, ...config }: ClientConfig = {}) {
    const overrides = { ...(baseUrl && { QSTASH_URL: baseUrl }), ...(token && { QSTASH_TOKEN: token }) };
    this.#server = serverFromEnvironment({ ...environment(), ...overrides }, config);
  }

  get dlq(): DLQ {
    return new DLQ(this.#server);
  }

  /** Starts a run, or several runs in one request. */
  trigger(params: TriggerOptions): Promise<{ workflowRunId: string }>;
  trigger(params: TriggerOptions[]): Promise<{ workflowRunId: string }[]>;
  async trigger(
    params: TriggerOptions | TriggerOptions[],
  ): Promise<{ workflowRunId: string } | { workflowRunId: string }[]> {
    const all = [params].flat().map((options) => ({ options, workflowRunId: runIdOf(options.workflowRunId) }));
    await this.#server.json({
      method: 'POST',
      path: '/v2/batch',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(all.map(({ options, workflowRunId }) => elementOf(this.#server, options, workflowRunId))),
    });
    const ids = all.map(({ workflowRunId }) => ({ workflowRunId }));
    return Array.isArray(params) ? ids : (ids[0] ?? { workflowRunId: '' });
  }

  /** Cancels runs by id, by filter, or all runs. Returns the number of cancelled runs. */
  async cancel(
    request: string | string[] | RunSelection | { ids?: string | string[]; urlStartingWith?: string; all?: true },
  ): Promise<{ cancelled: number }> {
    const selection = selectionOf(request);
    if (!selection) return { cancelled: 0 };
    return this.#server.json({ method: 'DELETE', path: pathOf('/v2/workflows/runs', cancelQueryOf(selection)) });
  }

  /**
   * Notifies all waiters of an event. With `workflowRunId`, only that run is notified, even if the run starts to wait
   * later.
   */
  notify(notification: Notification): Promise<NotifyResponse[]> {
    return this.#server.notify(notification);
  }

  getWaiters({ eventId }: { eventId: string }): Promise<Required<Waiter>[]> {
    return this.#server.json({ method: 'GET', path: `/v2/waiters/${encodeURIComponent(eventId)}`, isRepeatable: true });
  }

  /** Lists runs, newest first. */
  logs({
    cursor,
    count,
    filter,
    ...own
  }: {
    cursor?: string;
    count?: number;
    filter?: LogsFilter;
    workflowRunId?: string;
    state?: string;
    workflowUrl?: string;
    label?: string;
    workflowCreatedAt?: number;
  } = {}): Promise<WorkflowRunLogs> {
    const query = { groupBy: 'workflowRunId', ...own, cursor, count, ...filter };
    return this.#server.json({ method: 'GET', path: pathOf('/v2/workflows/events', query), isRepeatable: true });
  }
}

/** One element of a batch. */
function elementOf(server: Server, options: TriggerOptions, runId: string): object {
  const { url, body, headers, delay, notBefore, redact, failureUrl = url } = options;
  const redacted = [
    redact?.body && 'body',
    redact?.header === true ? 'header' : redact?.header?.map((name) => `header[${name}]`),
  ].flat();
  const redactFields = redacted.filter(Boolean).join(',');
  return {
    destination: url,
    headers: server.headersWith({
      ...startHeaders({ ...options, runId, userHeaders: new Headers(headers), failureUrl }),
      ...(delay !== undefined && { 'Upstash-Delay': durationOf(delay) }),
      ...(notBefore !== undefined && { 'Upstash-Not-Before': String(Math.round(notBefore)) }),
      ...(redactFields !== '' && { 'Upstash-Redact-Fields': redactFields }),
    }),
    ...bodyMember(body),
  };
}

/** Returns undefined for an empty list of ids, which selects nothing. */
function selectionOf(
  request: string | string[] | RunSelection | { ids?: string | string[]; urlStartingWith?: string; all?: true },
): RunSelection | undefined {
  if (typeof request === 'string') return { workflowRunIds: [request] };
  if (Array.isArray(request)) return request.length === 0 ? undefined : { workflowRunIds: request };
  const { ids, urlStartingWith } = request as { ids?: string | string[]; urlStartingWith?: string };
  if (ids !== undefined) return { workflowRunIds: [filled('ids', ids)].flat() };
  if (urlStartingWith !== undefined)
    return { filter: { workflowUrlStartingWith: filled('urlStartingWith', urlStartingWith) } };
  return request as RunSelection;
}
