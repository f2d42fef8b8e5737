/** A project of a test server: its address and credentials, and its messages, runs and DLQ as read through the API. */
import { Buffer } from 'node:buffer';
import type {
  DeadView,
  Disturbance,
  LogEntryView,
  MessageView,
  RunView,
  SigningKeys,
  WaypostEnvironment,
  WaypostProject,
} from './types.ts';

/** The number of requested entries per page; the API may return fewer entries. */
const PAGE = 1000;

interface ProjectAccess {
  url: string;
  token: string;
  signingKeys: SigningKeys;
  disturb: (disturbance: Disturbance) => void;
}

export class TestProject implements WaypostProject {
  readonly url: string;
  readonly token: string;
  readonly signingKeys: SigningKeys;
  readonly disturb: WaypostProject['disturb'];

  constructor({ url, token, signingKeys, disturb }: ProjectAccess) {
    this.url = url;
    this.token = token;
    this.signingKeys = signingKeys;
    this.disturb = disturb;
  }

  env(): WaypostEnvironment {
    return {
      QSTASH_URL: this.url,
      QSTASH_TOKEN: this.token,
      QSTASH_CURRENT_SIGNING_KEY: this.signingKeys.current,
      QSTASH_NEXT_SIGNING_KEY: this.signingKeys.next,
    };
  }

  async messages(): Promise<MessageView[]> {
    const messages = new Map<string, MessageView>();
    for (const encoded of await this.#all<LogEntryView>('/v2/logs?order=earliestFirst', 'logs')) {
      const entry = inWords(encoded);
      const { messageId, url, method, state, body } = entry;
      const before = messages.get(messageId)?.entries ?? [];
      const entries = [...before, entry];
      const attempts = entries.filter((each) => each.state === 'ACTIVE').length;
      messages.set(messageId, { messageId, url, method, state, attempts, body: body ?? '', entries });
    }
    return [...messages.values()];
  }

  async runs(): Promise<RunView[]> {
    return (await this.#all<RunView>('/v2/workflows/logs', 'runs')).toReversed();
  }

  async dlq(): Promise<DeadView[]> {
    const [messages, runs] = await Promise.all([
      this.#all<DeadView>('/v2/dlq', 'messages'),
      this.#all<DeadView>('/v2/workflows/dlq', 'messages'),
    ]);
    return [...messages, ...runs].toSorted((a, b) => a.createdAt - b.createdAt);
  }

  /** Reads all pages of a list. */
  async #all<T>(path: string, member: string): Promise<T[]> {
    const items: T[] = [];
    const target = new URL(path, this.url);
    target.searchParams.set('count', String(PAGE));
    while (true) {
      const response = await fetch(target, { headers: { authorization: `Bearer ${this.token}` } });
      const text = await response.text();
      if (!response.ok) throw new Error(`GET ${target.pathname} returned ${response.status}: ${text}`);
      const page = JSON.parse(text) as Record<string, unknown>;
      items.push(...(page[member] as T[]));
      if (typeof page['cursor'] !== 'string') return items;
      target.searchParams.set('cursor', page['cursor']);
    }
  }
}

/** Decodes the bodies of an entry, which the API returns in base64. */
function inWords({ body, responseBody, ...entry }: LogEntryView): LogEntryView {
  return {
    ...entry,
    ...(body !== undefined && { body: textOf(body) }),
    ...(responseBody !== undefined && { responseBody: textOf(responseBody) }),
  };
}

function textOf(base64: string): string {
  return Buffer.from(base64, 'base64').toString();
}
