/**
 * The engine's `Store` over a queue of commands and a reader. Everything here runs in the caller's thread: values
 * are encoded before they go to the database's thread and decoded when they come back.
 */

import type {
  ActiveRunFilter,
  DeadRun,
  DeadRunFilter,
  OutlinedEntry,
  Revival,
  RevivedAs,
} from '../engine/dead-runs.ts';
import type { FlowKey, FlowPin, Queue } from '../engine/lanes.ts';
import type {
  ClaimRef,
  Message,
  MessageId,
  MessageKey,
  Millis,
  NewMessage,
  ProjectId,
  RunEnding,
  Settlement,
  WorkerId,
} from '../engine/model.ts';
import type { RunEvent, RunEventFilter, RunFilter } from '../engine/run-log-store.ts';
import type { EndedAs, Mail, MailLimits, NewWaiter, Waiter, Waiting } from '../engine/run-stores.ts';
import type { Schedule, ScheduleChange } from '../engine/schedules.ts';
import type {
  Accepted,
  AcceptedStanding,
  AttributeFilter,
  ClaimAnswer,
  ClaimRequest,
  DeadFilter,
  DeadMessage,
  DeletedQueue,
  DueSchedule,
  LiveMessage,
  LogEntry,
  LogFilter,
  Page,
  PageRequest,
  Project,
  Saved,
  ScheduleView,
  SealedKeys,
  Settled,
  Store,
  StoreLimits,
  Succession,
  Token,
} from '../engine/stores.ts';
import type { Endpoint, EndpointSelector, UrlGroup, UrlGroupLimits } from '../engine/url-groups.ts';
import type { Beat } from '../engine/worker-store.ts';
import { decodeCursor, dlqIdOf, encodeCursor } from '../protocol/cursor.ts';
import { ApiError } from '../protocol/errors.ts';
import { keyOfMessageId } from '../protocol/ids.ts';
import type { HeaderMap } from '../protocol/settings.ts';
import type { RunHistory } from '../workflow/history.ts';
import type { JournalEntry, Run, RunKey } from '../workflow/model.ts';
import type { WriteMethod, Writes } from './batch.ts';
import { decodeDeadRuns, decodeOutline, decodeRevived, encodeRevival } from './dead-run-codec.ts';
import { decodeAccepted, decodeClaimed, decodeFlowKey, decodeLive, decodeQueue, decodeSaved } from './decode-lanes.ts';
import { decodeHistories, decodeRunEvents } from './decode-run-logs.ts';
import type { ReadMethod, Reads } from './reads.ts';
import { decodeHeader, encodeBytes, encodeHeader } from './sql/content-rows.ts';
import type { DeadRow } from './sql/dead.ts';
import type { PageRows, Position, Slice } from './sql/page.ts';
import {
  type ContentRow,
  codeOfLogState,
  decodeBurial,
  decodeDetail,
  decodeMessage,
  encodeNewMessage,
  encodeSettlement,
  logStateOf,
} from './sql/rows.ts';
import { encodeEnding } from './sql/runs/ending-rows.ts';
import { decodeJournalEntry, decodeRun, FAILURE_STATE, RUN_STATE } from './sql/runs/run-rows.ts';
import { decodeSchedule, decodeScheduleViews, encodeSchedule, encodeScheduleChange } from './sql/schedule-rows.ts';
import type { UrlGroupRow } from './sql/url-groups.ts';
import { decodeMail, decodeWaiter, decodeWaiting, encodeWait } from './waiter-codec.ts';

/** Windows of a list that one page may look through for rows that match (`WINDOW` in sql/page.ts rows each). */
const WINDOWS_MAX = 50;

const UNLIMITED: StoreLimits = { queuesMax: 0, parallelismMax: 0, messagesPerDayMax: 0, journalBytesMax: 0 };

/** Messages cancelled in one transaction, about a millisecond of work: publishes wait for no more of them. */
const CANCELLED_TOGETHER = 50;

/** Bytes of bodies on one page: it ends early rather than take the memory of a thousand large bodies. */
const PAGE_BYTES_MAX = 16 * 1024 * 1024;

/** The database as the store sees it, in this thread or in another. */
export interface Connection {
  write<M extends WriteMethod>(method: M, args: Writes[M]['args']): Promise<Writes[M]['answer']>;
  read<M extends ReadMethod>(method: M, args: Reads[M]['args']): Promise<Reads[M]['answer']>;
  /** From now on `listener` is told when a lane lets messages go that nobody was told of. */
  listen(listener: (dueAtMs: Millis) => void): void;
  /** From now on `listener` is told when a batch was refused of which something may have been saved. */
  listenForDoubt(listener: () => void): void;
  /** Batches committed, commands in them, commands that wait. */
  counts(): { batches: number; commands: number; waiting: number };
  close(): Promise<void>;
}

export class SqlStore implements Store {
  readonly #connection: Connection;
  readonly #limits: StoreLimits;

  constructor(connection: Connection, limits: StoreLimits = UNLIMITED) {
    this.#connection = connection;
    this.#limits = limits;
  }

  onDue(listener: (dueAtMs: Millis) => void): void {
    this.#connection.listen(listener);
  }

  onDoubt(listener: () => void): void {
    this.#connection.listenForDoubt(listener);
  }

  async accept(messages: NewMessage[], nowMs: Millis): Promise<Accepted[]> {
    const limits = this.#limits;
    const answer = await this.#connection.write('accept', { messages: messages.map(encodeNewMessage), limits, nowMs });
    return answer.map(decodeAccepted);
  }

  async claim(request: ClaimRequest, nowMs: Millis): Promise<ClaimAnswer> {
    const { claimed, parked, emptied, nextDueAtMs } = await this.#connection.write('claim', {
      request,
      limits: this.#limits,
      nowMs,
    });
    return {
      claimed: claimed.map(decodeClaimed),
      parked,
      emptied,
      nextDueAtMs: nextDueAtMs ?? undefined,
    };
  }

  async settle(settlement: Settlement, nowMs: Millis, succession?: Succession): Promise<Settled> {
    const args: Writes['settle']['args'] = { settlement: encodeSettlement(settlement), limits: this.#limits, nowMs };
    if (succession) args.succession = succession;
    const answer = await this.#connection.write('settle', args);
    if (answer.kind !== 'saved') return answer;
    const settled: Settled = { kind: 'saved' };
    if (answer.next) settled.next = decodeClaimed(answer.next);
    if (answer.follows) settled.follows = answer.follows.map(decodeSaved);
    return settled;
  }

  async findActiveRun(projectId: ProjectId, id: string): Promise<Run | undefined> {
    const row = await this.#connection.read('findActiveRun', { projectId, id });
    return row === null ? undefined : decodeRun(row);
  }

  async findRun(projectId: ProjectId, key: RunKey): Promise<Run | undefined> {
    const row = await this.#connection.read('findRun', { projectId, key });
    return row === null ? undefined : decodeRun(row);
  }

  async journalBytes(projectId: ProjectId, id: string): Promise<number | undefined> {
    return (await this.#connection.read('journalBytes', { projectId, id })) ?? undefined;
  }

  async readJournal(
    runKey: RunKey,
    { afterPosition = -1, toPosition = Number.MAX_SAFE_INTEGER }: { afterPosition?: number; toPosition?: number } = {},
  ): Promise<JournalEntry[]> {
    const rows = await this.#connection.read('readJournal', { runKey, afterPosition, toPosition });
    return rows.map(decodeJournalEntry);
  }

  async findRecords(projectId: ProjectId, keys: MessageKey[]): Promise<Message[]> {
    if (keys.length === 0) return [];
    return (await this.#connection.read('findRecords', { projectId, keys })).map(decodeMessage);
  }

  async endRuns(endings: { ending: RunEnding; follows: NewMessage[] }[], nowMs: Millis): Promise<EndedAs[]> {
    const answers = await this.#connection.write('endRuns', {
      endings: endings.map(({ ending, follows }) => ({
        ending: encodeEnding(ending),
        follows: follows.map(encodeNewMessage),
      })),
      limits: this.#limits,
      nowMs,
    });
    return answers.map((answer) =>
      answer.kind === 'ended' ? { kind: 'ended', follows: answer.follows.map(decodeSaved) } : answer,
    );
  }

  release(claims: ClaimRef[], nowMs: Millis): Promise<void> {
    return this.#connection.write('release', { claims, limits: this.#limits, nowMs });
  }

  releaseAll(nowMs: Millis): Promise<number> {
    return this.#connection.write('releaseAll', { limits: this.#limits, nowMs });
  }

  parkedOrigins(): Promise<string[]> {
    return this.#connection.read('parkedOrigins', {});
  }

  async find(projectId: ProjectId, id: MessageId, deliveredSinceMs: Millis): Promise<Message | undefined> {
    const key = keyOfMessageId(id);
    if (key === undefined) return undefined;
    const row = await this.#connection.read('find', { projectId, key, id, deliveredSinceMs });
    return row === null ? undefined : decodeMessage(row);
  }

  async standingOf(projectId: ProjectId, id: MessageId, nowMs: Millis): Promise<LiveMessage | undefined> {
    const key = keyOfMessageId(id);
    if (key === undefined) return undefined;
    const rows = await this.#connection.read('findLive', { projectId, key, id, nowMs });
    return rows === null ? undefined : decodeLive(rows, nowMs);
  }

  async cancelById(projectId: ProjectId, ids: MessageId[], nowMs: Millis): Promise<number> {
    const keys = keysOf(ids);
    if (keys.length === 0) return 0;
    return this.#connection.write('cancel', {
      projectId,
      keys,
      ids,
      countMarked: true,
      limits: this.#limits,
      nowMs,
    });
  }

  /** Looks for candidates beside the writer and cancels those that still stand, so that a search stalls nobody. */
  async cancelMatching(projectId: ProjectId, filter: AttributeFilter, limit: number, nowMs: Millis): Promise<number> {
    let cancelled = 0;
    let afterKey: MessageKey | undefined = -1;
    while (afterKey !== undefined && cancelled < limit) {
      const args: Reads['findCandidates']['args'] = { projectId, filter, afterKey, limit: limit - cancelled };
      const { keys, nextAfterKey }: Reads['findCandidates']['answer'] = await this.#connection.read(
        'findCandidates',
        args,
      );
      for (let at = 0; at < keys.length; at += CANCELLED_TOGETHER) {
        cancelled += await this.#connection.write('cancel', {
          projectId,
          keys: keys.slice(at, at + CANCELLED_TOGETHER),
          countMarked: false,
          limits: this.#limits,
          nowMs,
        });
      }
      afterKey = nextAfterKey;
    }
    return cancelled;
  }

  reserveNumbers(count: number): Promise<number> {
    return this.#connection.write('reserveNumbers', { count });
  }

  async listDead(projectId: ProjectId, filter: DeadFilter, page: PageRequest): Promise<Page<DeadMessage>> {
    const { messageId, responseStatus, fromMs: _from, toMs: _to, ...attributes } = filter;
    const messages = messageId && { ids: messageId, keys: keysOf(messageId) };
    return this.#readPage(filter, page, async (slice) => {
      const { rows, contents, ...rest } = await this.#connection.read('listDead', {
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
    const { rows, contents } = await this.#connection.read('deadAt', { projectId, places });
    return decodeDead(rows, contents);
  }

  async countDead(projectId: ProjectId, dlqIds: string[]): Promise<number> {
    const places = placesOf(dlqIds);
    return places.length === 0 ? 0 : this.#connection.read('countDead', { projectId, places });
  }

  async deleteDead(projectId: ProjectId, dlqIds: string[]): Promise<number> {
    const places = placesOf(dlqIds);
    if (places.length === 0) return 0;
    return this.#connection.write('deleteDead', { projectId, places });
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
    return this.#connection.write('reviveDead', { projectId, revivals: stored, limits: this.#limits, nowMs });
  }

  async listLogs(projectId: ProjectId, filter: LogFilter, page: PageRequest): Promise<Page<LogEntry>> {
    const { messageId, state, fromMs: _from, toMs: _to, ...attributes } = filter;
    const messages = messageId && { ids: messageId, keys: keysOf(messageId) };
    return this.#readPage(filter, page, async (slice) => {
      const { rows, contents, details, ...rest } = await this.#connection.read('listLogs', {
        projectId,
        filter: attributes,
        slice,
        ...(messages ? { messages } : {}),
        ...(state ? { states: state.map(codeOfLogState) } : {}),
      });
      const messageByKey = decodeMessages(contents);
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

  activeRunKeys(
    projectId: ProjectId,
    filter: ActiveRunFilter,
    { afterKey, limit }: { afterKey: RunKey; limit: number },
  ): Promise<{ keys: RunKey[]; nextAfterKey?: RunKey }> {
    return this.#connection.read('activeRunKeys', { projectId, filter, afterKey, limit });
  }

  async listDeadRuns(projectId: ProjectId, filter: DeadRunFilter, page: PageRequest): Promise<Page<DeadRun>> {
    const { failureCallback, fromMs: _from, toMs: _to, ...attributes } = filter;
    return this.#readPage(filter, page, async (slice) => {
      const read = await this.#connection.read('listDeadRuns', {
        projectId,
        filter: attributes,
        slice,
        ...(failureCallback && { failureStates: failureCallback.map((state) => FAILURE_STATE[state]) }),
      });
      const { rows: _rows, contents: _contents, answers: _answers, ...rest } = read;
      return { ...rest, items: decodeDeadRuns(read) };
    });
  }

  async findDeadRuns(projectId: ProjectId, dlqIds: string[]): Promise<DeadRun[]> {
    const places = placesOf(dlqIds);
    if (places.length === 0) return [];
    return decodeDeadRuns(await this.#connection.read('deadRunsAt', { projectId, places }));
  }

  async deleteDeadRuns(projectId: ProjectId, dlqIds: string[]): Promise<number> {
    const places = placesOf(dlqIds);
    if (places.length === 0) return 0;
    return this.#connection.write('deleteDeadRuns', { projectId, places });
  }

  async outlineJournal(runKey: RunKey): Promise<OutlinedEntry[]> {
    return (await this.#connection.read('outlineJournal', { runKey })).map(decodeOutline);
  }

  async reviveRun(revival: Revival, nowMs: Millis): Promise<RevivedAs> {
    const place = placeOf(revival.dlqId);
    if (!place) return { kind: 'missing' };
    const args = { ...encodeRevival(revival), place, limits: this.#limits, nowMs };
    return decodeRevived(await this.#connection.write('reviveRun', args));
  }

  async findFailureCallback(projectId: ProjectId, dlqId: string): Promise<Message | undefined> {
    const place = placeOf(dlqId);
    const row = place && (await this.#connection.read('findFailureCallback', { projectId, place }));
    return row ? decodeMessage(row) : undefined;
  }

  async repeatFailureCallback(
    projectId: ProjectId,
    dlqId: string,
    message: NewMessage,
    nowMs: Millis,
  ): Promise<Saved | 'missing' | 'notFailed'> {
    const place = placeOf(dlqId);
    if (!place) return 'missing';
    const args = { projectId, place, message: encodeNewMessage(message), limits: this.#limits, nowMs };
    const answer = await this.#connection.write('repeatFailureCallback', args);
    return answer === 'missing' || answer === 'notFailed' ? answer : { standing: answer };
  }

  async cancelFailureCallback(
    projectId: ProjectId,
    dlqId: string,
    nowMs: Millis,
  ): Promise<'canceled' | 'missing' | 'notInProgress'> {
    const place = placeOf(dlqId);
    if (!place) return 'missing';
    return this.#connection.write('cancelFailureCallback', { projectId, place, limits: this.#limits, nowMs });
  }

  async listRunEvents(projectId: ProjectId, filter: RunEventFilter, page: PageRequest): Promise<Page<RunEvent>> {
    const { messageId, state, fromMs: _from, toMs: _to, ...attributes } = filter;
    const messages = messageId && { ids: messageId, keys: keysOf(messageId) };
    return this.#readPage(filter, page, async (slice) => {
      const rows = await this.#connection.read('listRunEvents', {
        projectId,
        filter: attributes,
        slice,
        ...(messages && { messages }),
        ...(state && { states: state.map(codeOfLogState) }),
      });
      const { next, windowEnd, bytes } = rows;
      return { items: decodeRunEvents(rows), bytes, ...(next && { next }), ...(windowEnd && { windowEnd }) };
    });
  }

  async listRunHistories(
    projectId: ProjectId,
    filter: RunFilter,
    page: PageRequest,
    bodyBytesMax?: number,
  ): Promise<Page<RunHistory>> {
    const { messageId, state, fromMs: _from, toMs: _to, ...attributes } = filter;
    const messages = messageId && { ids: messageId, keys: keysOf(messageId) };
    return this.#readPage(filter, page, async (slice) => {
      const rows = await this.#connection.read('listHistories', {
        projectId,
        filter: attributes,
        slice,
        ...(messages && { messages }),
        ...(state && { states: state.map((name) => RUN_STATE[name]) }),
        ...(bodyBytesMax !== undefined && { bodyBytesMax }),
      });
      const { next, windowEnd, bytes } = rows;
      return { items: decodeHistories(rows), bytes, ...(next && { next }), ...(windowEnd && { windowEnd }) };
    });
  }

  ensureProject(name: string, signingKeys: SealedKeys, nowMs: Millis): Promise<Project> {
    return this.#connection.write('ensureProject', { name, signingKeys, nowMs });
  }

  listProjects(): Promise<Project[]> {
    return this.#connection.read('listProjects', {});
  }

  addToken(token: Token): Promise<void> {
    return this.#connection.write('addToken', token);
  }

  listTokens(): Promise<Token[]> {
    return this.#connection.read('listTokens', {});
  }

  removeToken(tokenHash: string): Promise<boolean> {
    return this.#connection.write('removeToken', { tokenHash });
  }

  async noteTokenUse(tokenHash: string, nowMs: Millis): Promise<void> {
    await this.#connection.write('noteTokenUse', { tokenHash, nowMs });
  }

  signingKeys(projectId: ProjectId): Promise<SealedKeys> {
    return this.#connection.read('signingKeys', { projectId });
  }

  replaceSigningKeys(projectId: ProjectId, expected: SealedKeys, next: SealedKeys): Promise<SealedKeys> {
    return this.#connection.write('replaceSigningKeys', { projectId, expected, next });
  }

  addEndpoints(
    projectId: ProjectId,
    name: string,
    endpoints: Endpoint[],
    limits: UrlGroupLimits,
    nowMs: Millis,
  ): Promise<'saved' | 'tooManyGroups' | 'tooManyEndpoints'> {
    return this.#connection.write('addEndpoints', { projectId, name, endpoints, limits, nowMs });
  }

  removeEndpoints(
    projectId: ProjectId,
    name: string,
    selectors: EndpointSelector[],
    nowMs: Millis,
  ): Promise<'saved' | 'missing'> {
    return this.#connection.write('removeEndpoints', { projectId, name, selectors, nowMs });
  }

  setGroupHeaders(projectId: ProjectId, name: string, headers: HeaderMap, nowMs: Millis): Promise<'saved' | 'missing'> {
    return this.#connection.write('setGroupHeaders', { projectId, name, headers: encodeHeader(headers), nowMs });
  }

  async deleteUrlGroup(projectId: ProjectId, name: string): Promise<void> {
    await this.#connection.write('deleteUrlGroup', { projectId, name });
  }

  async findUrlGroup(projectId: ProjectId, name: string): Promise<UrlGroup | undefined> {
    const row = await this.#connection.read('findUrlGroup', { projectId, name });
    return row === null ? undefined : decodeUrlGroup(row);
  }

  async listUrlGroups(projectId: ProjectId): Promise<UrlGroup[]> {
    return (await this.#connection.read('listUrlGroups', { projectId })).map(decodeUrlGroup);
  }

  saveSchedule(
    schedule: Schedule,
    fromVersion: number | undefined,
    schedulesMax: number,
  ): Promise<'saved' | 'stale' | 'tooMany'> {
    return this.#connection.write('saveSchedule', {
      schedule: encodeSchedule(schedule),
      fromVersion: fromVersion ?? null,
      schedulesMax,
    });
  }

  changeSchedules(changes: ScheduleChange[], nowMs: Millis): Promise<(AcceptedStanding[] | 'stale')[]> {
    const stored = changes.map(encodeScheduleChange);
    return this.#connection.write('changeSchedules', { changes: stored, limits: this.#limits, nowMs });
  }

  async deleteSchedule(projectId: ProjectId, id: string): Promise<void> {
    await this.#connection.write('deleteSchedule', { projectId, id });
  }

  async findSchedule(projectId: ProjectId, id: string): Promise<ScheduleView | undefined> {
    const [view] = decodeScheduleViews(await this.#connection.read('findSchedule', { projectId, id }));
    return view;
  }

  async listSchedules(projectId: ProjectId): Promise<ScheduleView[]> {
    return decodeScheduleViews(await this.#connection.read('listSchedules', { projectId }));
  }

  async dueSchedules(request: {
    nowMs: Millis;
    limit: number;
    bytesMax: number;
  }): Promise<{ due: DueSchedule[]; nextAtMs: Millis | undefined }> {
    const { due, nextAtMs } = await this.#connection.read('dueSchedules', request);
    return {
      due: due.map((row) => ({ schedule: decodeSchedule(row), isBusy: row.busy === 1 })),
      nextAtMs: nextAtMs ?? undefined,
    };
  }

  async nextMail(runKey: RunKey, eventId: string): Promise<Mail | undefined> {
    const row = await this.#connection.read('nextMail', { runKey, eventId });
    return row === null ? undefined : decodeMail(row);
  }

  async addWaiter(
    waiter: NewWaiter,
    taken: { mailKey: number; result: NewMessage } | undefined,
    nowMs: Millis,
  ): Promise<Waiting> {
    const answer = await this.#connection.write('addWaiter', {
      wait: encodeWait(waiter),
      taken: taken ? { mailKey: taken.mailKey, result: encodeNewMessage(taken.result) } : null,
      limits: this.#limits,
      nowMs,
    });
    return decodeWaiting(answer);
  }

  async listWaiters(
    projectId: ProjectId,
    eventId: string,
    { runKey = null, afterKey = -1, count }: { runKey?: RunKey | null; afterKey?: MessageKey; count: number },
  ): Promise<Waiter[]> {
    const rows = await this.#connection.read('listWaiters', { projectId, eventId, runKey, afterKey, count });
    return rows.map(decodeWaiter);
  }

  async resolveWaiters(
    resolutions: { waiterKey: MessageKey; result: NewMessage }[],
    nowMs: Millis,
  ): Promise<(Saved | 'gone')[]> {
    const answers = await this.#connection.write('resolveWaiters', {
      resolutions: resolutions.map(({ waiterKey, result }) => ({ waiterKey, result: encodeNewMessage(result) })),
      limits: this.#limits,
      nowMs,
    });
    return answers.map((saved) => (saved === null ? 'gone' : decodeSaved(saved)));
  }

  saveMail(
    projectId: ProjectId,
    runKey: RunKey,
    eventId: string,
    { key, body }: Mail,
    mailLimits: MailLimits,
  ): Promise<'saved' | 'over' | 'waited' | 'tooMuch'> {
    const mail = { projectId, runKey, eventId, key, body: encodeBytes(body), mailLimits };
    return this.#connection.write('saveMail', mail);
  }

  async dueWaiters(request: {
    nowMs: Millis;
    limit: number;
  }): Promise<{ due: Waiter[]; nextAtMs: Millis | undefined }> {
    const { due, nextAtMs } = await this.#connection.read('dueWaiters', request);
    return { due: due.map(decodeWaiter), nextAtMs: nextAtMs ?? undefined };
  }

  saveQueue(
    projectId: ProjectId,
    { name, parallelism, isPaused }: { name: string; parallelism: number; isPaused: boolean },
    nowMs: Millis,
  ): Promise<'saved' | 'tooManyQueues'> {
    const settings = { name, parallelism, paused: isPaused };
    return this.#connection.write('saveQueue', { projectId, ...settings, limits: this.#limits, nowMs });
  }

  setQueuePaused(projectId: ProjectId, name: string, isPaused: boolean, nowMs: Millis): Promise<'saved' | 'missing'> {
    const limits = this.#limits;
    return this.#connection.write('setQueuePaused', { projectId, name, paused: isPaused, limits, nowMs });
  }

  async deleteQueue(projectId: ProjectId, name: string, nowMs: Millis): Promise<DeletedQueue | undefined> {
    const queueId = await this.#connection.write('deleteQueue', { projectId, name, limits: this.#limits, nowMs });
    return queueId === null ? undefined : { projectId, queueId };
  }

  emptyQueue(queue: DeletedQueue, count: number, nowMs: Millis): Promise<boolean> {
    return this.#connection.write('emptyQueue', { ...queue, count, limits: this.#limits, nowMs });
  }

  async findQueue(projectId: ProjectId, name: string): Promise<Queue | undefined> {
    const row = await this.#connection.read('findQueue', { projectId, name });
    return row === null ? undefined : decodeQueue(row);
  }

  async listQueues(
    projectId: ProjectId,
    { after = '', count = Number.MAX_SAFE_INTEGER }: { after?: string; count?: number } = {},
  ): Promise<Queue[]> {
    return (await this.#connection.read('listQueues', { projectId, after, count })).map(decodeQueue);
  }

  async setKeyPaused(projectId: ProjectId, key: string, isPaused: boolean, nowMs: Millis): Promise<void> {
    await this.#connection.write('setKeyPaused', { projectId, key, paused: isPaused, nowMs });
  }

  async pinKey(projectId: ProjectId, key: string, pin: FlowPin, nowMs: Millis): Promise<void> {
    await this.#connection.write('pinKey', { projectId, key, pin, nowMs });
  }

  async unpinKey(
    projectId: ProjectId,
    key: string,
    parts: { parallelism: boolean; rate: boolean },
    nowMs: Millis,
  ): Promise<void> {
    await this.#connection.write('unpinKey', { projectId, key, ...parts, nowMs });
  }

  async resetKeyRate(projectId: ProjectId, key: string, nowMs: Millis): Promise<void> {
    await this.#connection.write('resetKeyRate', { projectId, key, nowMs });
  }

  async findKey(projectId: ProjectId, key: string, nowMs: Millis): Promise<FlowKey | undefined> {
    const row = await this.#connection.read('findKey', { projectId, key, nowMs });
    return row === null ? undefined : decodeFlowKey(row, nowMs);
  }

  async listKeys(
    projectId: ProjectId,
    filter: { search: string; after: string; count: number },
    nowMs: Millis,
  ): Promise<FlowKey[]> {
    const rows = await this.#connection.read('listKeys', { projectId, ...filter, nowMs });
    return rows.map((row) => decodeFlowKey(row, nowMs));
  }

  countInFlight(projectId: ProjectId): Promise<number> {
    return this.#connection.read('countInFlight', { projectId });
  }

  dropExpired(bounds: {
    logsBeforeMs: Millis;
    deadBeforeMs: Millis;
    keysUsedBeforeMs: Millis;
    nowMs: Millis;
    rowsMax: number;
  }): Promise<boolean> {
    return this.#connection.write('dropExpired', { ...bounds, limits: this.#limits });
  }

  async beat(worker: WorkerId, state: { timeoutMs: Millis; isLeaving: boolean }): Promise<Beat> {
    const answer = await this.#connection.write('beat', { worker, ...state });
    return {
      ...answer,
      nextDueAtMs: answer.nextDueAtMs ?? undefined,
      nextScheduleAtMs: answer.nextScheduleAtMs ?? undefined,
      nextWaiterAtMs: answer.nextWaiterAtMs ?? undefined,
    };
  }

  dismissLate(): Promise<WorkerId[]> {
    return this.#connection.write('dismissLate', {});
  }

  orphanedClaims(limit: number): Promise<ClaimRef[]> {
    return this.#connection.read('orphanedClaims', { limit });
  }

  claimsOf(worker: WorkerId): Promise<ClaimRef[]> {
    return this.#connection.read('claimsOf', { worker });
  }

  async leave(worker: WorkerId): Promise<void> {
    await this.#connection.write('leave', { worker });
  }

  async ping(): Promise<void> {
    await Promise.all([this.#connection.read('ping', {}), this.#connection.write('ping', {})]);
  }

  close(): Promise<void> {
    return this.#connection.close();
  }

  /** Batches committed, commands in them, commands that wait for theirs. */
  counts(): { batches: number; commands: number; waiting: number } {
    return this.#connection.counts();
  }

  /** Reads windows until the page is full, the list ends, or enough was looked at: then the page is a short one. */
  async #readPage<T>(
    times: { fromMs?: Millis; toMs?: Millis },
    { cursor, count, order }: PageRequest,
    readWindow: (slice: Slice) => Promise<Omit<PageRows<unknown>, 'rows'> & { items: T[]; bytes: number }>,
  ): Promise<Page<T>> {
    const items: T[] = [];
    let after = cursor === undefined ? undefined : positionOfCursor(cursor, order);
    let bytesLeft = PAGE_BYTES_MAX;
    for (let window = 0; window < WINDOWS_MAX && items.length < count && bytesLeft > 0; window++) {
      const slice: Slice = { order, count: count - items.length, bytesMax: bytesLeft };
      if (after) slice.after = after;
      if (times.fromMs !== undefined) slice.fromMs = times.fromMs;
      if (times.toMs !== undefined) slice.toMs = times.toMs;
      const read = await readWindow(slice);
      items.push(...read.items);
      bytesLeft -= read.bytes;
      after = read.next ?? read.windowEnd;
      if (!after) return { items };
      if (read.next) break;
    }
    return after ? { items, cursor: encodeCursor(after.timeMs, after.n) } : { items };
  }
}

/** A plain time means the whole millisecond: latest first goes on with it, earliest first begins with it. */
function positionOfCursor(cursor: string, order: PageRequest['order']): Position {
  const place = decodeCursor(cursor);
  if (!place)
    throw new ApiError('invalid_query', `invalid query parameter cursor: ${JSON.stringify(cursor)} is not a cursor`);
  const wholeMs = order === 'latestFirst' ? Number.MAX_SAFE_INTEGER : -1;
  return { timeMs: place.ms, n: place.n ?? wholeMs };
}

/** Ids that this server cannot have made are nobody's. */
function keysOf(ids: readonly MessageId[]): MessageKey[] {
  return ids.flatMap((id) => keyOfMessageId(id) ?? []);
}

function placesOf(dlqIds: readonly string[]): Position[] {
  return [...new Set(dlqIds)].flatMap((dlqId) => placeOf(dlqId) ?? []);
}

/** A DLQ id has the form of a cursor; anything else, other spellings of the same numbers included, names no entry. */
function placeOf(dlqId: string): Position | undefined {
  const place = decodeCursor(dlqId);
  if (place?.n === undefined || dlqIdOf(place.ms, place.n) !== dlqId) return undefined;
  return { timeMs: place.ms, n: place.n };
}

function decodeUrlGroup(row: UrlGroupRow): UrlGroup {
  const group: UrlGroup = {
    name: row.name,
    createdAtMs: row.created_at_ms,
    updatedAtMs: row.updated_at_ms,
    endpoints: row.endpoints,
  };
  if (row.headers !== null) group.headers = decodeHeader(row.headers);
  return group;
}

function decodeMessages(contents: readonly ContentRow[]): Map<MessageKey, Message> {
  return new Map(contents.map((content) => [content.key, decodeMessage(content)]));
}

function messageOf(messageByKey: Map<MessageKey, Message>, key: MessageKey): Message {
  const message = messageByKey.get(key);
  if (!message) throw new Error(`message ${key} has no content`);
  return message;
}

function decodeDead(rows: readonly DeadRow[], contents: readonly ContentRow[]): DeadMessage[] {
  const messageByKey = decodeMessages(contents);
  return rows.map((row) => ({
    dlqId: dlqIdOf(row.timeMs, row.n),
    message: messageOf(messageByKey, row.n),
    burial: decodeBurial(row),
  }));
}
