/**
 * The books of a crash test, kept outside the server: what was attempted, what was acknowledged, what arrived.
 * The checker is the "total queue" of the literature: lost, unexpected, repeated without a reason.
 *
 * Each publish carries a tag in its body. One tag may come to have several message ids: a retry from the DLQ makes a
 * new message with the same body. An operation whose answer never came is *unknown* and may have gone either way.
 */
import { type Repetitions, repetitionsOf } from './repetitions.ts';

export interface Arrival {
  tag: string;
  messageId: string;
  /** `Upstash-Retried` as it came. */
  retried: number;
  /** Which start of the server sent it, counted from 0. */
  incarnation: number;
  /** What the endpoint answered. */
  status: number;
}

interface TagRecord {
  /** Ids the server acknowledged for this tag. */
  acked: Set<string>;
  /** Publishes and DLQ retries of this tag whose answer never came: each may have made one more id. */
  unknown: number;
}

interface IdRecord {
  tag: string;
  delivered: boolean;
  /** A cancel was answered 2xx, or its answer never came. */
  cancelAsked: boolean;
  /** A DLQ retry or delete was acknowledged or unknown: the id may be gone from the DLQ. */
  takenFromDlq: boolean;
}

/** What the server itself says about a message once everything is quiet. */
export interface FinalView {
  /** Ids in the DLQ. */
  dead: Set<string>;
  /** By message id: those of its logged states that end a message (DELIVERED, FAILED, CANCELED), in their order. */
  endings: Map<string, string[]>;
  /** By message id, for all that the logs know: attempts whose outcome is logged. */
  attempts: Map<string, number>;
}

export interface Verdict extends Repetitions {
  acked: number;
  unknown: number;
  delivered: number;
  /** Acknowledged, and neither delivered nor dead nor cancelled. */
  lost: string[];
  /** Arrived although nobody published it, or under an id that nobody was given. */
  unexpected: string[];
  /** Acknowledged messages whose logs do not show exactly one ending (P2). */
  notEndedOnce: string[];
}

export class Ledger {
  readonly #tags = new Map<string, TagRecord>();
  readonly #ids = new Map<string, IdRecord>();
  readonly #arrivals: Arrival[] = [];
  #acks = 0;

  attempted(tag: string): void {
    this.#tags.set(tag, { acked: new Set(), unknown: 0 });
  }

  acked(tag: string, messageId: string): void {
    this.#tag(tag).acked.add(messageId);
    this.#acks += 1;
    this.#id(messageId, tag);
  }

  /** Of a publish to a group, as many messages as it may have made. */
  unknown(tag: string, count = 1): void {
    this.#tag(tag).unknown += count;
  }

  cancelAsked(messageId: string): void {
    const record = this.#ids.get(messageId);
    if (record !== undefined) record.cancelAsked = true;
  }

  /** As `cancelAsked`, for all that was acknowledged for `tag`. */
  cancelOfAllAsked(tag: string): void {
    for (const messageId of this.#tag(tag).acked) this.cancelAsked(messageId);
  }

  /** The entry of `messageId` was retried or may have been. What it became is reported by `acked` or `unknown`. */
  takenFromDlq(messageId: string, tag: string): void {
    this.#id(messageId, tag).takenFromDlq = true;
  }

  arrived(arrival: Arrival): void {
    this.#arrivals.push(arrival);
    const record = this.#id(arrival.messageId, arrival.tag);
    if (arrival.status >= 200 && arrival.status < 300) record.delivered = true;
  }

  arrivals(): readonly Arrival[] {
    return this.#arrivals;
  }

  /** Acknowledged publishes so far. */
  get acks(): number {
    return this.#acks;
  }

  /** Only grows: acknowledged publishes and attempts that arrived. */
  progress(): number {
    return this.#acks + this.#arrivals.length;
  }

  /** All ids the server acknowledged. */
  acknowledged(): string[] {
    return [...this.#tags.values()].flatMap((record) => [...record.acked]);
  }

  /** The tags of all messages that anybody knows, by their ids. */
  tags(): Map<string, string> {
    return new Map([...this.#ids].map(([id, { tag }]) => [id, tag]));
  }

  judge(view: FinalView): Verdict {
    const acked = this.acknowledged();
    const lost = acked.filter((id) => !this.#isDelivered(id) && !this.#isAccountedFor(id, view));
    return {
      acked: acked.length,
      unknown: [...this.#tags.values()].reduce((sum, record) => sum + record.unknown, 0),
      delivered: acked.filter((id) => this.#isDelivered(id)).length,
      lost,
      unexpected: this.#unexpected(),
      notEndedOnce: acked
        .filter((id) => view.endings.get(id)?.length !== 1)
        .map((id) => `${id}: ${view.endings.get(id)?.join(', ') ?? 'no ending'}`),
      ...repetitionsOf(this.#arrivals),
    };
  }

  #isAccountedFor(id: string, view: FinalView): boolean {
    const record = this.#ids.get(id);
    if (record === undefined) return false;
    return (
      view.dead.has(id) || record.takenFromDlq || (record.cancelAsked && view.endings.get(id)?.at(-1) === 'CANCELED')
    );
  }

  #unexpected(): string[] {
    const unexpected: string[] = [];
    const strangers = new Map<string, Set<string>>();
    for (const { tag, messageId } of this.#arrivals) {
      const record = this.#tags.get(tag);
      if (record === undefined) unexpected.push(`${messageId}: nobody published "${tag}"`);
      else if (!record.acked.has(messageId)) {
        const ids = strangers.get(tag) ?? new Set();
        strangers.set(tag, ids.add(messageId));
      }
    }
    for (const [tag, ids] of strangers) {
      if (ids.size > this.#tag(tag).unknown) unexpected.push(`"${tag}" arrived as ${[...ids].join(', ')}`);
    }
    return unexpected;
  }

  #isDelivered(id: string): boolean {
    return this.#ids.get(id)?.delivered === true;
  }

  #tag(tag: string): TagRecord {
    const record = this.#tags.get(tag);
    if (record === undefined) throw new Error(`the ledger has no publish "${tag}"`);
    return record;
  }

  #id(messageId: string, tag: string): IdRecord {
    let record = this.#ids.get(messageId);
    if (record === undefined) {
      record = { tag, delivered: false, cancelAsked: false, takenFromDlq: false };
      this.#ids.set(messageId, record);
    }
    return record;
  }
}
