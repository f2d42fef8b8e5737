/**
 * The records that a harness keeps outside the servers that it crashes: what was sent, acknowledged and received, and in which
 * order lanes were used. `checks.ts` reads it when all work has ended.
 *
 * Each publish has a tag in its body. One tag may have several message ids: a retry from the DLQ creates a new message with the
 * same body. An operation without a response is *unknown*: it may or may not have taken effect.
 */
export interface Arrival {
  tag: string;
  messageId: string;
  /** The received `Upstash-Retried`. */
  retried: number;
  /** The start of the server that sent the attempt, counted from 0. */
  incarnation: number;
  /** The status of the endpoint's response. */
  status: number;
}

export type CallbackKind = 'callback' | 'failureCallback';

/** An attempt of a callback: its own id and retries, and the reported attempt. */
export interface Telling extends Omit<Arrival, 'tag'> {
  kind: CallbackKind;
  sourceId: string;
  /** The number of retries before the reported attempt. */
  sourceRetried: number;
}

/** The number of retries of every callback of the load. */
export const CALLBACK_RETRIES = 2;

/** Whether a callback has no further attempts: the endpoint accepted it, or this was its last attempt. */
export function isLastTelling({ status, retried }: Pick<Telling, 'status' | 'retried'>): boolean {
  return isSuccess(status) || retried >= CALLBACK_RETRIES;
}

export interface Lane {
  kind: 'queue' | 'key';
  name: string;
  parallelism?: number;
  /** The maximum number of starts in a period. */
  rate?: number;
  periodMs?: number;
}

/** The facts about a message that the load knows before it publishes the message. */
export interface Entrant {
  tag: string;
  lanes: readonly Lane[];
  maxRetries: number;
  /**
   * Whether every attempt has a callback. The message is finished only when its callbacks are finished (contract M 9.5).
   */
  hasCallback: boolean;
}

export type LaneEvent =
  | { kind: 'entered'; entrant: Entrant }
  /** An attempt has arrived completely at the endpoint. */
  | { kind: 'arrived'; attempt: Arrival; atMs: number }
  /** The response is about to be written, so the server reacts to it later. */
  | { kind: 'responded'; attempt: Arrival }
  /** The response to the last attempt of a callback is about to be written. */
  | { kind: 'told'; sourceId: string; sourceRetried: number }
  /** A pause was acknowledged. */
  | { kind: 'paused'; lane: Lane; incarnation: number }
  /** The request that ends a pause is about to be sent. */
  | { kind: 'resumed'; lane: Lane }
  /** A delete was acknowledged. */
  | { kind: 'deleted'; lane: Lane; incarnation: number };

interface TagRecord {
  /** Ids the server acknowledged for this tag. */
  acked: Set<string>;
  /** Publishes and DLQ retries of this tag without a response: each may have created one more id. */
  unknown: number;
}

interface IdRecord {
  tag: string;
  isDelivered: boolean;
  /** Whether a cancel had a 2xx response, or no response. */
  isCancelAsked: boolean;
  /** Whether a DLQ retry or delete was acknowledged or unknown, so that the id may be gone from the DLQ. */
  isTakenFromDlq: boolean;
}

export class Ledger {
  readonly #tags = new Map<string, TagRecord>();
  readonly #ids = new Map<string, IdRecord>();
  readonly #arrivals: Arrival[] = [];
  readonly #wishes = new Map<string, readonly CallbackKind[]>();
  readonly #tellings: Telling[] = [];
  readonly #laneEvents: LaneEvent[] = [];
  readonly #patience: number;
  #acks = 0;
  #taken = 0;
  #refusedForGood = 0;

  /**
   * `patience`: the number of incarnations after a pause or a delete in which attempts that were claimed earlier may
   * still arrive.
   */
  constructor(patience = 0) {
    this.#patience = patience;
  }

  attempted(tag: string): void {
    this.#tags.set(tag, { acked: new Set(), unknown: 0 });
  }

  acked(tag: string, messageId: string): void {
    this.#tag(tag).acked.add(messageId);
    this.#acks += 1;
    this.#id(messageId, tag);
  }

  /** `count`: the maximum number of messages of a publish to a group. */
  unknown(tag: string, count = 1): void {
    this.#tag(tag).unknown += count;
  }

  cancelAsked(messageId: string): void {
    const record = this.#ids.get(messageId);
    if (record !== undefined) record.isCancelAsked = true;
  }

  /** Records `cancelAsked` for all messages that were acknowledged for `tag`. */
  cancelOfAllAsked(tag: string): void {
    for (const messageId of this.#tag(tag).acked) this.cancelAsked(messageId);
  }

  /** The DLQ entry of `messageId` was or may have been retried. `acked` or `unknown` records the new message. */
  takenFromDlq(messageId: string, tag: string): void {
    this.#id(messageId, tag).isTakenFromDlq = true;
  }

  arrived(arrival: Arrival): void {
    this.#arrivals.push(arrival);
    const record = this.#id(arrival.messageId, arrival.tag);
    if (isSuccess(arrival.status)) record.isDelivered = true;
  }

  /** The messages of `tag` ask for callbacks of `kinds`. */
  callbacksAsked(tag: string, kinds: readonly CallbackKind[]): void {
    this.#wishes.set(tag, kinds);
  }

  told(telling: Telling): void {
    this.#tellings.push(telling);
    if (isSuccess(telling.status)) this.#taken += 1;
    else if (isLastTelling(telling)) this.#refusedForGood += 1;
  }

  noteLane(event: LaneEvent): void {
    const isOrder = event.kind === 'paused' || event.kind === 'deleted';
    this.#laneEvents.push(isOrder ? { ...event, incarnation: event.incarnation + this.#patience } : event);
  }

  arrivals(): readonly Arrival[] {
    return this.#arrivals;
  }

  tellings(): readonly Telling[] {
    return this.#tellings;
  }

  laneEvents(): readonly LaneEvent[] {
    return this.#laneEvents;
  }

  /** Acknowledged publishes so far. */
  get acks(): number {
    return this.#acks;
  }

  /** The accepted callbacks so far, including repeated ones. */
  get taken(): number {
    return this.#taken;
  }

  /** The callbacks so far whose last attempt was rejected. */
  get refusedForGood(): number {
    return this.#refusedForGood;
  }

  /** Only grows: acknowledged publishes and attempts that arrived. */
  progress(): number {
    return this.#acks + this.#arrivals.length;
  }

  /** All ids the server acknowledged. */
  acknowledged(): string[] {
    return [...this.#tags.values()].flatMap((record) => [...record.acked]);
  }

  /** The record of a publish; undefined if there was none. */
  publishOf(tag: string): Readonly<TagRecord> | undefined {
    return this.#tags.get(tag);
  }

  /** The record of a message, by its id. */
  message(id: string): Readonly<IdRecord> | undefined {
    return this.#ids.get(id);
  }

  /** All known messages, with the callbacks that they request. */
  wishes(): [messageId: string, kinds: readonly CallbackKind[]][] {
    return [...this.#ids].map(([id, { tag }]) => [id, this.#wishes.get(tag) ?? []]);
  }

  /** The maximum number of messages that were created without an acknowledgement. */
  get unknowns(): number {
    return [...this.#tags.values()].reduce((sum, { unknown }) => sum + unknown, 0);
  }

  #tag(tag: string): TagRecord {
    const record = this.#tags.get(tag);
    if (record === undefined) throw new Error(`the ledger has no publish "${tag}"`);
    return record;
  }

  #id(messageId: string, tag: string): IdRecord {
    let record = this.#ids.get(messageId);
    if (record === undefined) {
      record = { tag, isDelivered: false, isCancelAsked: false, isTakenFromDlq: false };
      this.#ids.set(messageId, record);
    }
    return record;
  }
}

export function isSuccess(status: number): boolean {
  return status >= 200 && status < 300;
}
