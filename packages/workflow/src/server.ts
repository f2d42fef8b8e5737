/** Sends requests of the endpoint and the client to the server, with a few retries if a request is idempotent. */
import { WorkflowError } from './errors.ts';
import { sendByFetch, type TextResponse, transport } from './transport.ts';
import type { NotifyResponse, QStashClientExtraConfig, WorkflowClient } from './types.ts';

/** Delays before the retries of a request that got no response, or a 503. */
const RETRY_DELAYS_MS = [50, 200, 800];
const RETRY_DELAY_MAX_MS = 800;

export interface Request {
  method: string;
  path: string;
  headers?: Record<string, string>;
  body?: string;
  /** The token of a call, instead of the account's token. */
  token?: string;
  /** The request is idempotent: it may be sent again even if the server has already processed it. */
  isRepeatable?: boolean;
}

/** Notifies all waiters of an event, or one run, even if that run starts to wait later. */
export interface Notification {
  eventId: string;
  eventData?: unknown;
  workflowRunId?: string | undefined;
}

function retryDelaysOf(retry: QStashClientExtraConfig['retry']): readonly number[] {
  if (retry === undefined) return RETRY_DELAYS_MS;
  if (retry === false) return [];
  const { retries = RETRY_DELAYS_MS.length, backoff } = retry;
  return Array.from(
    { length: retries },
    (_, index) => backoff?.(index) ?? RETRY_DELAYS_MS[index] ?? RETRY_DELAY_MAX_MS,
  );
}

/** Headers for the server itself. */
const IS_CONTROL = /^(upstash-|waypost-|content-type$)/;

export class Server {
  readonly baseUrl: string;
  readonly #token: string | undefined;
  readonly #headers: Record<string, string>;
  readonly #retryDelaysMs: readonly number[];

  constructor(
    baseUrl: string,
    token: string | undefined,
    { headers, retry }: Pick<QStashClientExtraConfig, 'headers' | 'retry'> = {},
  ) {
    this.baseUrl = baseUrl.replace(/\/+$/, '');
    this.#token = token;
    this.#headers = headers ? Object.fromEntries(new Headers(headers)) : {};
    this.#retryDelaysMs = retryDelaysOf(retry);
  }

  /** The account's token. Throws if there is none. */
  get token(): string {
    if (!this.#token) throw new WorkflowError('no server token is set: set QSTASH_TOKEN');
    return this.#token;
  }

  /**
   * The headers of a message: its own headers, and the headers of the client that have other names. A name without a
   * prefix is forwarded, as in the official client.
   */
  headersWith(own: Record<string, string>): Record<string, string> {
    const names = new Set(Object.keys(own).map((name) => name.toLowerCase()));
    const common = Object.entries(this.#headers)
      .map(([name, value]) => [IS_CONTROL.test(name) ? name : `upstash-forward-${name}`, value] as const)
      .filter(([name]) => !names.has(name));
    return { ...Object.fromEntries(common), ...own };
  }

  /** Returns the response, whatever its status. Throws `WorkflowError` if the server cannot be reached. */
  async send({ method, path, headers, body, token, isRepeatable = false }: Request): Promise<TextResponse> {
    if (this.baseUrl === '') throw new WorkflowError('no server address is set: set QSTASH_URL');
    const request = {
      method,
      url: `${this.baseUrl}${path}`,
      headers: { ...this.#headers, ...headers, authorization: `Bearer ${token ?? this.token}` },
      ...(body !== undefined && { body }),
    };
    // Checkpoints are frequent, so they use the fastest transport. Other requests use `fetch`, which apps and frameworks may replace.
    const send = token === undefined ? sendByFetch : transport;
    for (let attempt = 0; ; attempt += 1) {
      const retryDelayMs = isRepeatable ? this.#retryDelaysMs[attempt] : undefined;
      try {
        const response = await send(request);
        if (response.status !== 503 || retryDelayMs === undefined) return response;
      } catch (error) {
        if (retryDelayMs === undefined) throw new WorkflowError(`${this.baseUrl} cannot be reached: ${String(error)}`);
      }
      await new Promise((resolve) => setTimeout(resolve, retryDelayMs));
    }
  }

  /** Returns the JSON of a 2xx response. Throws `WorkflowError` with the status of any other response. */
  async json<T>(request: Request): Promise<T> {
    const { status, text } = await this.send(request);
    if (status < 200 || status > 299) throw new WorkflowError(messageOf(text), status);
    return (text === '' ? undefined : JSON.parse(text)) as T;
  }

  notify({ eventId, eventData, workflowRunId }: Notification): Promise<NotifyResponse[]> {
    const segments = workflowRunId === undefined ? [eventId] : [workflowRunId, eventId];
    return this.json({
      method: 'POST',
      path: `/v2/notify/${segments.map(segmentOf).join('/')}`,
      headers: { 'content-type': 'application/json' },
      ...bodyMember(eventData),
    });
  }
}

/** The body of a request: text unchanged, any other value as JSON. */
export function bodyMember(body: unknown): { body?: string } {
  if (body === undefined) return {};
  return { body: typeof body === 'string' ? body : JSON.stringify(body) };
}

/** The message of an error response. */
export function messageOf(text: string): string {
  try {
    return (JSON.parse(text) as { error?: string }).error ?? text;
  } catch {
    return text;
  }
}

/** The server that an official client was created for. */
export function serverOf({ http }: WorkflowClient): Server {
  const { baseUrl, authorization, headers } = http as { baseUrl?: string; authorization?: string; headers?: Headers };
  if (baseUrl === undefined || authorization === undefined)
    throw new WorkflowError('qstashClient is not a client of @upstash/qstash: it has no address and no token.');
  return new Server(baseUrl, authorization.replace(/^Bearer /, ''), headers && { headers });
}

/** Throws `WorkflowError` for dots, which change the path even when they are encoded. */
function segmentOf(id: string): string {
  if (/^\.{1,2}$/.test(id)) throw new WorkflowError(`'${id}' cannot be a path segment.`);
  return encodeURIComponent(id);
}
