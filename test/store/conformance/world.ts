/** The shared tools of the cases: an open store, messages to save, and short ways to read their state. */

import { afterEach, beforeEach } from 'vitest';
import type { ClaimRequest, ClaimResult } from '../../../src/engine/dispatch/claims.ts';
import type { BacklogKey } from '../../../src/engine/lanes/backlog-key.ts';
import type {
  Change,
  LogEvent,
  LogState,
  Message,
  MessageId,
  NewMessage,
  NewMessageState,
  Settlement,
} from '../../../src/engine/model.ts';
import type { Handoff, LogEntry, StoreLimits } from '../../../src/engine/stores.ts';
import { mintMessageId } from '../../../src/protocol/ids.ts';
import type { MessageSettings } from '../../../src/protocol/options/settings.ts';
import type { Store } from '../../../src/store/store.ts';

/** Without limits by default. */
export type OpenStore = (limits?: StoreLimits) => Promise<Store>;

export const T0 = 1_800_000_000_000;
export const PROJECT = 1;
export const OTHER_PROJECT = 2;

export interface MessageOptions extends Partial<Omit<Message, 'settings'>> {
  settings?: Partial<MessageSettings>;
  state?: NewMessageState;
  events?: LogEvent[];
  deduplication?: NewMessage['deduplication'];
}

/** A store for each case, and the numbers that a single engine would assign. */
export class World {
  readonly store: Store;
  #next: number;

  private constructor(store: Store, firstNumber: number) {
    this.store = store;
    this.#next = firstNumber;
  }

  static async open(open: OpenStore): Promise<World> {
    const store = await open();
    return new World(store, await store.messages.reserveNumbers({ count: 1_000_000 }));
  }

  number(): number {
    this.#next += 1;
    return this.#next - 1;
  }

  /** A waiting message that is due at its creation, unless `options` say otherwise. */
  message(options: MessageOptions = {}): NewMessage {
    const key = options.key ?? this.number();
    const { settings, state, events, deduplication, ...fields } = options;
    const url = fields.url ?? 'https://example.com/hook';
    const createdAtMs = fields.createdAtMs ?? T0;
    const message: Message = {
      key,
      id: mintMessageId(key, (count) => new Uint8Array(count).fill(key % 200)),
      projectId: PROJECT,
      url,
      origin: new URL(url).origin,
      method: 'POST',
      header: {},
      body: new Uint8Array(0),
      createdAtMs,
      notBeforeMs: createdAtMs,
      ...fields,
      settings: { dialect: 'upstash', maxRetries: 3, ...settings },
    };
    const initialState = state ?? { kind: 'due', dueAtMs: message.notBeforeMs };
    const newMessages: NewMessage = {
      message,
      state: initialState,
      ...(events && { events }),
    };
    if (deduplication) newMessages.deduplication = deduplication;
    return newMessages;
  }

  save(messages: NewMessage[], nowMs = T0): ReturnType<Store['messages']['accept']> {
    return this.store.messages.accept({ messages, nowMs });
  }

  settle(
    message: Message,
    claimToken: number,
    change: Change,
    nowMs = T0,
    handoff?: Handoff,
  ): ReturnType<Store['messages']['settle']> {
    return this.store.messages.settle({ settlement: settlement(message, claimToken, change), nowMs, handoff });
  }

  /** Saves a message and returns it. */
  async accept(options: MessageOptions = {}): Promise<Message> {
    const newMessages = this.message(options);
    const [result] = await this.save([newMessages], newMessages.message.createdAtMs);
    if (result?.kind !== 'accepted') throw new Error('the message was taken for a duplicate');
    return newMessages.message;
  }

  /** Saves a message as claimed and returns it with its token. */
  async acceptClaimed(options: MessageOptions = {}): Promise<{ message: Message; claimToken: number }> {
    const claimToken = this.number();
    return {
      message: await this.accept({ ...options, state: { kind: 'claimed', claimToken, worker: 'w1' } }),
      claimToken,
    };
  }

  /** Saves a message and lets it die at `failedAtMs`. */
  async acceptDead(
    failedAtMs: number,
    options: MessageOptions = {},
    status = 500,
  ): Promise<{ message: Message; dlqId: string }> {
    const { message, claimToken } = await this.acceptClaimed({ createdAtMs: failedAtMs, ...options });
    const result = await this.settle(message, claimToken, lastFailure(failedAtMs, status));
    if (result.kind !== 'saved') throw new Error('the deadLetter was stale');
    return { message, dlqId: `${failedAtMs}-${message.key}` };
  }

  claim(request: Partial<ClaimRequest> = {}, nowMs = T0): Promise<ClaimResult> {
    const limit = request.limit ?? 10;
    const firstToken = this.#next;
    this.#next += limit;
    return this.store.messages.claim({
      request: {
        worker: 'w1',
        firstToken,
        limit,
        bytesMax: 1e9,
        capacityByOrigin: {},
        defaultCapacity: 100,
        due: true,
        lanesFirst: false,
        backlogsToServe: [],
        ...request,
      },
      nowMs,
    });
  }

  /** All log entries of a message, oldest first. */
  async logsOf(message: { id: MessageId; projectId?: number }): Promise<LogEntry[]> {
    const filter = { messageId: [message.id] };
    const page = await this.store.logs.listLogs({
      projectId: message.projectId ?? PROJECT,
      filter,
      page: {
        count: 1000,
        order: 'earliestFirst',
      },
    });
    return page.items;
  }

  async statesOf(message: { id: MessageId; projectId?: number }): Promise<LogState[]> {
    return (await this.logsOf(message)).map(({ state }) => state);
  }

  /** The backlogs with messages; no case has more. */
  waitingBacklogs(): Promise<BacklogKey[]> {
    return this.store.messages.waitingBacklogs({ after: undefined, limit: 1_000 });
  }

  find(message: Message): Promise<Message | undefined> {
    return this.store.messages.find({
      projectId: message.projectId,
      id: message.id,
      deliveredSinceMs: Number.MAX_SAFE_INTEGER,
    });
  }
}

/** Opens a world before each case of a suite and closes it after. */
export function eachWorld(open: OpenStore): () => World {
  let world: World | undefined;
  beforeEach(async () => {
    world = await World.open(open);
  });
  afterEach(async () => {
    await world?.store.close();
    world = undefined;
  });
  return () => {
    if (!world) throw new Error('there is no world outside of a case');
    return world;
  };
}

export function settlement(message: Message, claimToken: number, change: Change): Settlement {
  return { key: message.key, projectId: message.projectId, claimToken, change };
}

export function delivered(atMs = T0): Change {
  return { next: { kind: 'finished' }, events: [{ atMs, state: 'DELIVERED' }] };
}

export function retrying(atMs: number, dueAtMs: number, retried: number): Change {
  return {
    next: { kind: 'waiting', dueAtMs, retried },
    events: [
      { atMs, state: 'ERROR', detail: { error: 'connection refused', nextDeliveryTimeMs: dueAtMs } },
      { atMs, state: 'RETRY', detail: { nextDeliveryTimeMs: dueAtMs } },
    ],
  };
}

export function lastFailure(failedAtMs: number, responseStatus = 500): Change {
  const response = { status: responseStatus, header: { 'X-Reason': ['broken'] }, body: bytes('no') };
  return {
    next: { kind: 'finished' },
    events: [
      { atMs: failedAtMs, state: 'ERROR', detail: { error: 'status 500', response } },
      { atMs: failedAtMs, state: 'FAILED' },
    ],
    deadLetter: {
      failedAtMs,
      retried: 3,
      responseStatus,
      responseHeader: { 'X-Reason': ['broken'] },
      responseBody: bytes('no'),
    },
  };
}

export function bytes(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}
