/**
 * A client of the real server over real sockets that records which responses it did not get. Each call ends as `ok` (2xx), as
 * `refused` (any other status) or as `unknown`: the server may have been killed before or after it wrote.
 */
import { Agent, request } from 'undici';
import { DEVELOPMENT_TOKEN } from '../../bench/waypost-process.ts';

export type Reply =
  | { kind: 'ok' | 'refused'; status: number; json: unknown; retryAfter: string | undefined }
  | { kind: 'unknown'; why: string };

export class Client {
  readonly #agent = new Agent({ connections: 32, keepAliveTimeout: 1_000 });
  readonly #url: string;
  readonly #patienceMs: number;
  readonly #token: string;

  /** If no response arrives within `patienceMs`, the outcome of the request is unknown. */
  constructor(url: string, patienceMs = 20_000, token = DEVELOPMENT_TOKEN) {
    this.#url = url;
    this.#patienceMs = patienceMs;
    this.#token = token;
  }

  async call(
    method: 'GET' | 'POST' | 'DELETE',
    path: string,
    headers: Record<string, string> = {},
    body = '',
  ): Promise<Reply> {
    try {
      const answer = await request(`${this.#url}${path}`, {
        method,
        headers: { authorization: `Bearer ${this.#token}`, ...headers },
        body: body === '' ? null : body,
        dispatcher: this.#agent,
        headersTimeout: this.#patienceMs,
        bodyTimeout: this.#patienceMs,
      });
      const text = await answer.body.text();
      const retryAfter = answer.headers['retry-after'];
      return {
        kind: answer.statusCode >= 200 && answer.statusCode < 300 ? 'ok' : 'refused',
        status: answer.statusCode,
        json: text === '' ? undefined : JSON.parse(text),
        retryAfter: typeof retryAfter === 'string' ? retryAfter : undefined,
      };
    } catch (error) {
      return { kind: 'unknown', why: String(error) }; // connection refused, reset, or closed during the response: all effects of a kill
    }
  }

  publish(destination: string, tag: string, headers: Record<string, string> = {}): Promise<Reply> {
    return this.call('POST', `/v2/publish/${destination}`, { 'content-type': 'text/plain', ...headers }, tag);
  }

  close(): Promise<void> {
    return this.#agent.destroy();
  }
}

/** The `messageId` in the response to a publish. Throws if there is none. */
export function messageIdOf(json: unknown): string {
  if (typeof json === 'object' && json !== null && 'messageId' in json && typeof json.messageId === 'string') {
    return json.messageId;
  }
  throw new Error(`no messageId in ${JSON.stringify(json)}`);
}
