/** The part of a store that the dispatcher uses, in memory, with switches that make it slow or refuse. */

import type { ClaimedDue, ClaimRequest, ClaimResult } from '../../src/engine/dispatch/claims.ts';
import { type BacklogKey, backlogKey } from '../../src/engine/lanes/backlog-key.ts';
import type { ClaimToken, Message, MessageKey, Millis, NewMessage, Settlement } from '../../src/engine/model.ts';
import { StoreUnavailable } from '../../src/engine/store-errors.ts';
import type { Settled } from '../../src/engine/stores.ts';
import { ClaimCapacity } from '../../src/store/operations/claims/claim-capacity.ts';
import type { Store } from '../../src/store/store.ts';

interface Row {
  message: Message;
  retried: number;
  dueAtMs: Millis;
  isInBacklog: boolean;
  claimToken?: ClaimToken;
}

type DispatcherStore = Pick<Store['messages'], 'claim' | 'settle' | 'release' | 'reserveNumbers' | 'waitingBacklogs'> &
  Pick<Store['runs'], 'findRun' | 'findRecords' | 'readJournal'>;

export class FakeStore implements DispatcherStore {
  readonly messages = this;
  readonly runs = this;
  readonly rows = new Map<MessageKey, Row>();
  readonly claims: ClaimRequest[] = [];
  readonly settlements: Settlement[] = [];
  readonly released: MessageKey[] = [];
  /** Messages that follow from settlements, saved or not, in order. */
  readonly offered: NewMessage[] = [];
  readonly cancelRequested = new Set<MessageKey>();
  /** Awaited before each write is made. */
  beforeWrite: () => Promise<void> = () => Promise.resolve();
  /** Refuses every write while true. */
  refuses = false;
  refusals = 0;
  #next = 1;

  add(message: Message, state: { dueAtMs?: Millis; isInBacklog?: boolean; claimToken?: ClaimToken } = {}): void {
    const { dueAtMs = message.notBeforeMs, isInBacklog = false } = state;
    const row: Row = { message, retried: 0, dueAtMs, isInBacklog };
    if (state.claimToken !== undefined) row.claimToken = state.claimToken;
    this.rows.set(message.key, row);
  }

  async reserveNumbers({ count }: { count: number }): Promise<number> {
    await this.#write();
    const first = this.#next;
    this.#next += count;
    return first;
  }

  async claim({ request, nowMs }: { request: ClaimRequest; nowMs: Millis }): Promise<ClaimResult> {
    await this.#write();
    this.claims.push(request);
    const claimed: ClaimedDue[] = [];
    const rooms = new ClaimCapacity(request);
    const take = (row: Row): boolean => {
      const line = lineTo(row);
      if (claimed.length === request.limit || rooms.of(line) === 0) return false;
      rooms.take(line);
      const claimToken = request.firstToken + claimed.length;
      Object.assign(row, { claimToken, isInBacklog: false });
      claimed.push({
        message: row.message,
        retried: row.retried,
        claimToken,
        claimedAtMs: nowMs,
        dueAtMs: row.dueAtMs,
      });
      return true;
    };
    for (const line of request.backlogsToServe) for (const row of this.#messagesIn(line)) take(row);
    const waitingBacklogs = new Set<BacklogKey>();
    for (const row of request.due ? this.#waiting() : []) {
      const isPassedOver = request.dueFirst === true && request.backlogsToServe.includes(lineTo(row));
      if (row.dueAtMs > nowMs || (!isPassedOver && take(row))) continue;
      row.isInBacklog = true;
      waitingBacklogs.add(lineTo(row));
    }
    return {
      claimed,
      waitingBacklogs: [...waitingBacklogs],
      emptied: request.backlogsToServe.filter((line) => this.#messagesIn(line).length === 0),
      nextDueAtMs: this.#waiting()[0]?.dueAtMs,
    };
  }

  async settle({ settlement }: { settlement: Settlement }): Promise<Settled> {
    await this.#write();
    this.settlements.push(settlement);
    this.offered.push(...(settlement.change.follows ?? []));
    const row = this.rows.get(settlement.key);
    if (row?.claimToken !== settlement.claimToken) return { kind: 'stale' };
    const alternative = this.cancelRequested.has(settlement.key) ? settlement.changeIfCancelRequested : undefined;
    const { next, follows } = alternative ?? settlement.change;
    this.rows.delete(settlement.key);
    if (next.kind === 'waiting') this.rows.set(settlement.key, { message: row.message, isInBacklog: false, ...next });
    for (const { message, state } of follows ?? []) {
      this.add(message, state.kind === 'origin' ? { dueAtMs: state.dueAtMs, isInBacklog: true } : state);
    }
    const cancelled = alternative && ({ isCancelled: true } as const);
    return {
      kind: 'saved',
      ...cancelled,
      ...(follows && { follows: follows.map(({ state }) => ({ state: state.kind })) }),
    };
  }

  async release({
    claims,
    nowMs,
  }: {
    claims: { key: MessageKey; claimToken: ClaimToken }[];
    nowMs: Millis;
  }): Promise<void> {
    await this.#write();
    for (const { key, claimToken } of claims) {
      const row = this.rows.get(key);
      if (row?.claimToken !== claimToken) continue;
      this.rows.set(key, { message: row.message, retried: row.retried, dueAtMs: nowMs, isInBacklog: false });
      this.released.push(key);
    }
  }

  async waitingBacklogs({
    after = '1 ',
    limit,
  }: {
    after: BacklogKey | undefined;
    limit: number;
  }): Promise<BacklogKey[]> {
    await this.#write();
    const lines = [...this.rows.values()].filter(({ isInBacklog }) => isInBacklog).map(lineTo);
    return [...new Set(lines)]
      .filter((line) => line > after)
      .toSorted()
      .slice(0, limit);
  }

  async findRun(): Promise<undefined> {}

  async findRecords(): Promise<[]> {
    return [];
  }

  async readJournal(): Promise<[]> {
    return [];
  }

  async #write(): Promise<void> {
    await this.beforeWrite();
    if (!this.refuses) return;
    this.refusals += 1;
    throw new StoreUnavailable('the disk is full');
  }

  #waiting(): Row[] {
    const rows = [...this.rows.values()].filter((row) => row.claimToken === undefined && !row.isInBacklog);
    return rows.toSorted((a, b) => a.dueAtMs - b.dueAtMs || a.message.key - b.message.key);
  }

  #messagesIn(backlog: BacklogKey): Row[] {
    return [...this.rows.values()].filter((row) => row.isInBacklog && lineTo(row) === backlog);
  }
}

function lineTo({ message }: Row): BacklogKey {
  return backlogKey(message.projectId, message.origin);
}
