/** How are runs kept: their journals and waits, those in the DLQ, and their logs? */
import type { Saved } from '../engine/accepted.ts';
import type {
  ActiveRunFilter,
  DeadRun,
  DeadRunFilter,
  DeadRunStore,
  OutlinedEntry,
  Revival,
  RevivedAs,
} from '../engine/dead-runs.ts';
import type { Message, MessageKey, Millis, NewMessage, ProjectId, RunEnding } from '../engine/model.ts';
import type { Page, PageRequest } from '../engine/page.ts';
import type { RunEvent, RunEventFilter, RunFilter, RunLogStore } from '../engine/run-log-store.ts';
import type {
  EndedAs,
  Mail,
  MailLimits,
  NewWaiter,
  RunStore,
  Waiter,
  WaiterStore,
  Waiting,
} from '../engine/run-stores.ts';
import type { RunHistory } from '../workflow/history.ts';
import type { JournalEntry, Run, RunKey } from '../workflow/model.ts';
import { decodeDeadRuns, decodeOutline, decodeRevived, encodeRevival } from './dead-run-codec.ts';
import { decodeSaved } from './decode-lanes.ts';
import { decodeHistories, decodeRunEvents } from './decode-run-logs.ts';
import { keysOf, placeOf, placesOf, readPage } from './pages.ts';
import { SqlSetupStore } from './setup-store.ts';
import { encodeBytes } from './sql/content-rows.ts';
import { codeOfLogState, decodeMessage, encodeNewMessage } from './sql/rows.ts';
import { encodeEnding } from './sql/runs/ending-rows.ts';
import { decodeJournalEntry, decodeRun, FAILURE_STATE, RUN_STATE } from './sql/runs/run-rows.ts';
import { decodeMail, decodeWaiter, decodeWaiting, encodeWait } from './waiter-codec.ts';

/** The second part of `SqlStore`. */
export class SqlRunStore extends SqlSetupStore implements RunStore, WaiterStore, DeadRunStore, RunLogStore {
  async findActiveRun(projectId: ProjectId, id: string): Promise<Run | undefined> {
    const row = await this.connection.read('findActiveRun', { projectId, id });
    return row === null ? undefined : decodeRun(row);
  }

  async findRun(projectId: ProjectId, key: RunKey): Promise<Run | undefined> {
    const row = await this.connection.read('findRun', { projectId, key });
    return row === null ? undefined : decodeRun(row);
  }

  async journalBytes(projectId: ProjectId, id: string): Promise<number | undefined> {
    return (await this.connection.read('journalBytes', { projectId, id })) ?? undefined;
  }

  async readJournal(
    runKey: RunKey,
    { afterPosition = -1, toPosition = Number.MAX_SAFE_INTEGER }: { afterPosition?: number; toPosition?: number } = {},
  ): Promise<JournalEntry[]> {
    const rows = await this.connection.read('readJournal', { runKey, afterPosition, toPosition });
    return rows.map(decodeJournalEntry);
  }

  async findRecords(projectId: ProjectId, keys: MessageKey[]): Promise<Message[]> {
    if (keys.length === 0) return [];
    return (await this.connection.read('findRecords', { projectId, keys })).map(decodeMessage);
  }

  async endRuns(endings: { ending: RunEnding; follows: NewMessage[] }[], nowMs: Millis): Promise<EndedAs[]> {
    const answers = await this.connection.write('endRuns', {
      endings: endings.map(({ ending, follows }) => ({
        ending: encodeEnding(ending),
        follows: follows.map(encodeNewMessage),
      })),
      nowMs,
    });
    return answers.map((answer) =>
      answer.kind === 'ended' ? { kind: 'ended', follows: answer.follows.map(decodeSaved) } : answer,
    );
  }

  async nextMail(runKey: RunKey, eventId: string): Promise<Mail | undefined> {
    const row = await this.connection.read('nextMail', { runKey, eventId });
    return row === null ? undefined : decodeMail(row);
  }

  async addWaiter(
    waiter: NewWaiter,
    taken: { mailKey: number; result: NewMessage } | undefined,
    nowMs: Millis,
  ): Promise<Waiting> {
    const answer = await this.connection.write('addWaiter', {
      wait: encodeWait(waiter),
      taken: taken ? { mailKey: taken.mailKey, result: encodeNewMessage(taken.result) } : null,
      nowMs,
    });
    return decodeWaiting(answer);
  }

  async listWaiters(
    projectId: ProjectId,
    eventId: string,
    { runKey = null, afterKey = -1, count }: { runKey?: RunKey | null; afterKey?: MessageKey; count: number },
  ): Promise<Waiter[]> {
    const rows = await this.connection.read('listWaiters', { projectId, eventId, runKey, afterKey, count });
    return rows.map(decodeWaiter);
  }

  async resolveWaiters(
    resolutions: { waiterKey: MessageKey; result: NewMessage }[],
    nowMs: Millis,
  ): Promise<(Saved | 'gone')[]> {
    const answers = await this.connection.write('resolveWaiters', {
      resolutions: resolutions.map(({ waiterKey, result }) => ({ waiterKey, result: encodeNewMessage(result) })),
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
    return this.connection.write('saveMail', mail);
  }

  async dueWaiters(request: {
    nowMs: Millis;
    limit: number;
  }): Promise<{ due: Waiter[]; nextAtMs: Millis | undefined }> {
    const { due, nextAtMs } = await this.connection.read('dueWaiters', request);
    return { due: due.map(decodeWaiter), nextAtMs: nextAtMs ?? undefined };
  }

  activeRunKeys(
    projectId: ProjectId,
    filter: ActiveRunFilter,
    { afterKey, limit }: { afterKey: RunKey; limit: number },
  ): Promise<{ keys: RunKey[]; nextAfterKey?: RunKey }> {
    return this.connection.read('activeRunKeys', { projectId, filter, afterKey, limit });
  }

  async listDeadRuns(projectId: ProjectId, filter: DeadRunFilter, page: PageRequest): Promise<Page<DeadRun>> {
    const { failureCallback, fromMs: _from, toMs: _to, ...attributes } = filter;
    return readPage(filter, page, async (slice) => {
      const read = await this.connection.read('listDeadRuns', {
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
    return decodeDeadRuns(await this.connection.read('deadRunsAt', { projectId, places }));
  }

  async deleteDeadRuns(projectId: ProjectId, dlqIds: string[]): Promise<number> {
    const places = placesOf(dlqIds);
    if (places.length === 0) return 0;
    return this.connection.write('deleteDeadRuns', { projectId, places });
  }

  async outlineJournal(runKey: RunKey): Promise<OutlinedEntry[]> {
    return (await this.connection.read('outlineJournal', { runKey })).map(decodeOutline);
  }

  async reviveRun(revival: Revival, nowMs: Millis): Promise<RevivedAs> {
    const place = placeOf(revival.dlqId);
    if (!place) return { kind: 'missing' };
    const args = { ...encodeRevival(revival), place, nowMs };
    return decodeRevived(await this.connection.write('reviveRun', args));
  }

  async findFailureCallback(projectId: ProjectId, dlqId: string): Promise<Message | undefined> {
    const place = placeOf(dlqId);
    const row = place && (await this.connection.read('findFailureCallback', { projectId, place }));
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
    const args = { projectId, place, message: encodeNewMessage(message), nowMs };
    const answer = await this.connection.write('repeatFailureCallback', args);
    return answer === 'missing' || answer === 'notFailed' ? answer : { standing: answer };
  }

  async cancelFailureCallback(
    projectId: ProjectId,
    dlqId: string,
    nowMs: Millis,
  ): Promise<'canceled' | 'missing' | 'notInProgress'> {
    const place = placeOf(dlqId);
    if (!place) return 'missing';
    return this.connection.write('cancelFailureCallback', { projectId, place, nowMs });
  }

  async listRunEvents(projectId: ProjectId, filter: RunEventFilter, page: PageRequest): Promise<Page<RunEvent>> {
    const { messageId, state, fromMs: _from, toMs: _to, ...attributes } = filter;
    const messages = messageId && { ids: messageId, keys: keysOf(messageId) };
    return readPage(filter, page, async (slice) => {
      const rows = await this.connection.read('listRunEvents', {
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
    return readPage(filter, page, async (slice) => {
      const rows = await this.connection.read('listHistories', {
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
}
