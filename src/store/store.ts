/**
 * The engine's `Store` over a queue of commands and a reader. Everything here runs in the caller's thread: values
 * are encoded before they go to the database's thread and decoded when they come back. Here are messages, their logs and
 * the DLQ; what is set up, and runs, have files of their own, which make one class with this one.
 */
import type { Accepted, AcceptedStanding } from '../engine/accepted.ts';
import type { ClaimAnswer, ClaimRequest } from '../engine/claims.ts';
import type { AttributeFilter, DeadFilter, LogFilter } from '../engine/filters.ts';
import type {
  ClaimRef,
  Message,
  MessageId,
  MessageKey,
  Millis,
  NewMessage,
  ProjectId,
  Settlement,
  WorkerId,
} from '../engine/model.ts';
import type { OriginLine } from '../engine/origin-line.ts';
import type { Page, PageRequest } from '../engine/page.ts';
import type { DeadMessage, LiveMessage, LogEntry, Settled, Store, Succession } from '../engine/stores.ts';
import type { Beat, WorkerState } from '../engine/worker-store.ts';
import { dlqIdOf } from '../protocol/cursor.ts';
import { keyOfMessageId } from '../protocol/ids.ts';
import { decodeAccepted, decodeClaimed, decodeLive, decodeSaved } from './decode-lanes.ts';
import type { Reads, Writes } from './operations.ts';
import { keysOf, placeOf, placesOf, readPage } from './pages.ts';
import { SqlRunStore } from './run-store.ts';
import type { DeadRow } from './sql/dead.ts';
import {
  type ContentRow,
  codeOfLogState,
  decodeBurial,
  decodeDetail,
  decodeMessage,
  encodeNewMessage,
  encodeSettlement,
  logStateOf,
  type StoredNewMessage,
} from './sql/rows.ts';

/** Messages cancelled in one transaction, about a millisecond of work: publishes wait for no more of them. */
const CANCELLED_TOGETHER = 50;

/** Messages that become rows, or rows messages, before others have a turn: a few milliseconds of work, where they have hundreds of headers. */
const TOGETHER = 32;

/** The whole store. */
export class SqlStore extends SqlRunStore implements Store {
  onDue(listener: (dueAtMs: Millis) => void): void {
    this.connection.listen(listener);
  }

  onParked(listener: (line: OriginLine) => void): void {
    this.connection.listenForParked(listener);
  }

  onAccountsChanged(listener: () => void): void {
    this.connection.listenForAccounts?.(listener);
  }

  onDoubt(listener: () => void): void {
    this.connection.listenForDoubt(listener);
  }

  async accept(messages: NewMessage[], nowMs: Millis, accountsVersion?: number): Promise<Accepted[]> {
    // Without a pause for a few: what is asked for one after the other is done so.
    const encoded: StoredNewMessage[] = [];
    for (const message of messages) {
      encoded.push(encodeNewMessage(message));
      if (encoded.length % TOGETHER === 0) await this.connection.endOfTurn?.();
    }
    const args: Writes['accept']['args'] = { messages: encoded, nowMs };
    if (accountsVersion !== undefined) args.accountsVersion = accountsVersion;
    const answer = await this.connection.write('accept', args);
    return answer.map(decodeAccepted);
  }

  async claim(request: ClaimRequest, nowMs: Millis): Promise<ClaimAnswer> {
    const { claimed, parked, emptied, nextDueAtMs } = await this.connection.write('claim', { request, nowMs });
    return {
      claimed: claimed.map(decodeClaimed),
      parked,
      emptied,
      nextDueAtMs: nextDueAtMs ?? undefined,
    };
  }

  async settle(settlement: Settlement, nowMs: Millis, succession?: Succession): Promise<Settled> {
    const args: Writes['settle']['args'] = { settlement: encodeSettlement(settlement), nowMs };
    if (succession) args.succession = succession;
    const answer = await this.connection.write('settle', args);
    if (answer.kind !== 'saved') return answer;
    const settled: Settled = { kind: 'saved' };
    if (answer.next) settled.next = decodeClaimed(answer.next);
    if (answer.follows) settled.follows = answer.follows.map(decodeSaved);
    if (answer.isCancelled) settled.isCancelled = true;
    return settled;
  }

  release(claims: ClaimRef[], nowMs: Millis): Promise<void> {
    return this.connection.write('release', { claims, nowMs });
  }

  releaseAll(nowMs: Millis): Promise<number> {
    return this.connection.write('releaseAll', { nowMs });
  }

  parkedLines(piece?: { after: OriginLine | undefined; limit: number }): Promise<OriginLine[]> {
    return this.connection.read('parkedLines', piece ?? { after: undefined, limit: Number.MAX_SAFE_INTEGER });
  }

  async find(projectId: ProjectId, id: MessageId, deliveredSinceMs: Millis): Promise<Message | undefined> {
    const key = keyOfMessageId(id);
    if (key === undefined) return undefined;
    const row = await this.connection.read('find', { projectId, key, id, deliveredSinceMs });
    return row === null ? undefined : decodeMessage(row);
  }

  async standingOf(projectId: ProjectId, id: MessageId, nowMs: Millis): Promise<LiveMessage | undefined> {
    const key = keyOfMessageId(id);
    if (key === undefined) return undefined;
    const rows = await this.connection.read('findLive', { projectId, key, id, nowMs });
    return rows === null ? undefined : decodeLive(rows, nowMs);
  }

  async cancelById(projectId: ProjectId, ids: MessageId[], nowMs: Millis): Promise<number> {
    const keys = keysOf(ids);
    if (keys.length === 0) return 0;
    return this.connection.write('cancel', {
      projectId,
      keys,
      ids,
      countMarked: true,
      nowMs,
    });
  }

  /** Looks for candidates beside the writer and cancels those that still stand, so that a search stalls nobody. */
  async cancelMatching(projectId: ProjectId, filter: AttributeFilter, limit: number, nowMs: Millis): Promise<number> {
    let cancelled = 0;
    let afterKey: MessageKey | undefined = -1;
    while (afterKey !== undefined && cancelled < limit) {
      const args: Reads['findCandidates']['args'] = { projectId, filter, afterKey, limit: limit - cancelled };
      const { keys, nextAfterKey }: Reads['findCandidates']['answer'] = await this.connection.read(
        'findCandidates',
        args,
      );
      for (let at = 0; at < keys.length; at += CANCELLED_TOGETHER) {
        cancelled += await this.connection.write('cancel', {
          projectId,
          keys: keys.slice(at, at + CANCELLED_TOGETHER),
          countMarked: false,
          nowMs,
        });
      }
      afterKey = nextAfterKey;
    }
    return cancelled;
  }

  reserveNumbers(count: number): Promise<number> {
    return this.connection.write('reserveNumbers', { count });
  }

  async listDead(projectId: ProjectId, filter: DeadFilter, page: PageRequest): Promise<Page<DeadMessage>> {
    const { messageId, responseStatus, fromMs: _from, toMs: _to, ...attributes } = filter;
    const messages = messageId && { ids: messageId, keys: keysOf(messageId) };
    return readPage(filter, page, async (slice) => {
      const { rows, contents, ...rest } = await this.connection.read('listDead', {
        projectId,
        filter: attributes,
        slice,
        ...(messages ? { messages } : {}),
        ...(responseStatus ? { responseStatus } : {}),
      });
      return { ...rest, items: decodeDead(rows, contents) };
    });
  }

  async findDead(projectId: ProjectId, dlqId: string): Promise<DeadMessage | undefined> {
    const [dead] = await this.findDeadMany(projectId, [dlqId]);
    return dead;
  }

  async findDeadMany(projectId: ProjectId, dlqIds: string[]): Promise<DeadMessage[]> {
    const places = placesOf(dlqIds);
    if (places.length === 0) return [];
    const { rows, contents } = await this.connection.read('deadAt', { projectId, places });
    return decodeDead(rows, contents);
  }

  async countDead(projectId: ProjectId, dlqIds: string[]): Promise<number> {
    const places = placesOf(dlqIds);
    return places.length === 0 ? 0 : this.connection.read('countDead', { projectId, places });
  }

  async deleteDead(projectId: ProjectId, dlqIds: string[]): Promise<number> {
    const places = placesOf(dlqIds);
    if (places.length === 0) return 0;
    return this.connection.write('deleteDead', { projectId, places });
  }

  async reviveDead(
    projectId: ProjectId,
    revivals: { dlqId: string; successor: NewMessage }[],
    nowMs: Millis,
  ): Promise<AcceptedStanding[] | 'missing'> {
    const stored: Writes['reviveDead']['args']['revivals'] = [];
    for (const { dlqId, successor } of revivals) {
      const place = placeOf(dlqId);
      if (!place) return 'missing';
      stored.push({ place, successor: encodeNewMessage(successor) });
    }
    return this.connection.write('reviveDead', { projectId, revivals: stored, nowMs });
  }

  async listLogs(projectId: ProjectId, filter: LogFilter, page: PageRequest): Promise<Page<LogEntry>> {
    const { messageId, state, fromMs: _from, toMs: _to, ...attributes } = filter;
    const messages = messageId && { ids: messageId, keys: keysOf(messageId) };
    return readPage(filter, page, async (slice) => {
      const { rows, contents, details, ...rest } = await this.connection.read('listLogs', {
        projectId,
        filter: attributes,
        slice,
        ...(messages ? { messages } : {}),
        ...(state ? { states: state.map(codeOfLogState) } : {}),
      });
      const messageByKey = new Map<MessageKey, Message>();
      for (const content of contents) {
        messageByKey.set(content.key, decodeMessage(content));
        if (messageByKey.size % TOGETHER === 0) await this.connection.endOfTurn?.();
      }
      const detailBySeq = new Map(details.map((detail) => [detail.seq, decodeDetail(detail)]));
      const items = rows.map((row): LogEntry => {
        const detail = detailBySeq.get(row.n);
        const entry = {
          atMs: row.timeMs,
          state: logStateOf(row.state),
          message: messageOf(messageByKey, row.message_key),
        };
        return detail ? { ...entry, detail } : entry;
      });
      return { ...rest, items };
    });
  }

  async dropExpired(bounds: {
    logsBeforeMs: Millis;
    deadBeforeMs: Millis;
    keysUsedBeforeMs: Millis;
    nowMs: Millis;
    rowsMax: number;
  }): Promise<boolean> {
    const mayLeaveRows = await this.connection.write('dropExpired', bounds);
    const mayLeaveTables = (await this.connection.dropTables?.(bounds)) ?? false;
    return mayLeaveRows || mayLeaveTables;
  }

  async beat(worker: WorkerId, state: WorkerState): Promise<Beat> {
    const answer = await this.connection.write('beat', { worker, ...state });
    return {
      ...answer,
      nextDueAtMs: answer.nextDueAtMs ?? undefined,
      nextScheduleAtMs: answer.nextScheduleAtMs ?? undefined,
      nextWaiterAtMs: answer.nextWaiterAtMs ?? undefined,
    };
  }

  workersBehind(accountsVersion?: number): Promise<{ accountsVersion: number; behind: WorkerId[] }> {
    return this.connection.write('workersBehind', { accountsVersion: accountsVersion ?? null });
  }

  dismissLate(nowMs: Millis): Promise<WorkerId[]> {
    return this.connection.write('dismissLate', { nowMs });
  }

  orphanedClaims(limit: number): Promise<ClaimRef[]> {
    return this.connection.read('orphanedClaims', { limit });
  }

  claimsOf(worker: WorkerId): Promise<ClaimRef[]> {
    return this.connection.read('claimsOf', { worker });
  }

  async leave(worker: WorkerId): Promise<void> {
    await this.connection.write('leave', { worker });
  }

  async ping(): Promise<void> {
    // A transaction that writes nothing would come through on a full disk, too.
    await Promise.all([this.connection.read('ping', {}), this.connection.write('reserveNumbers', { count: 1 })]);
  }

  close(): Promise<void> {
    return this.connection.close();
  }

  /** Batches committed, commands in them, commands that wait for theirs. */
  counts(): { batches: number; commands: number; waiting: number } {
    return this.connection.counts();
  }
}

function messageOf(messageByKey: Map<MessageKey, Message>, key: MessageKey): Message {
  const message = messageByKey.get(key);
  if (!message) throw new Error(`message ${key} has no content`);
  return message;
}

function decodeDead(rows: readonly DeadRow[], contents: readonly ContentRow[]): DeadMessage[] {
  const messageByKey = new Map(contents.map((content) => [content.key, decodeMessage(content)]));
  return rows.map((row) => ({
    dlqId: dlqIdOf(row.timeMs, row.n),
    message: messageOf(messageByKey, row.n),
    burial: decodeBurial(row),
  }));
}
