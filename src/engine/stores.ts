/**
 * What the engine asks of a store, one small interface for each noun. Every method is one transaction (reads: one
 * snapshot), is given `nowMs` where time matters, and reads no clock. A promise that resolves says that the
 * change is durable (P1). All throw `StoreUnavailable` when nothing was written and the caller may try again.
 */

import type { HeaderMap, HttpMethod } from '../protocol/settings.ts';
import type { CellStore, ProjectMoveStore, ProjectStore } from './accounts/store.ts';
import type { AttributeFilter, DeadFilter, LogFilter } from './filters.ts';
import type { OriginLine } from './lanes/origin-line.ts';
import type { FlowKeyStore, QueueStore } from './lanes/store.ts';
import type { Accepted, Saved } from './messages/accepted.ts';
import type { ClaimAnswer, ClaimRequest } from './messages/claims.ts';
import type { Minute } from './minutes/minute.ts';
import type {
  Checkpoint,
  Claimed,
  ClaimRef,
  ClaimToken,
  DeadLetter,
  InProject,
  InProjectAt,
  LogDetail,
  LogState,
  MadeDue,
  Message,
  MessageId,
  MessageKey,
  Millis,
  NewMessage,
  ProjectId,
  RunLogState,
  Settlement,
  WorkerId,
} from './model.ts';
import type { OperatorEventStore } from './operator-events/model.ts';
import type { Page, PageRequest } from './page.ts';
import type { DeadRunStore } from './runs/dead-run-store.ts';
import type { RunLogStore } from './runs/log-store.ts';
import type { RunStore, WaiterListStore, WaiterStore } from './runs/stores.ts';
import type { ScheduleStore } from './schedules/store.ts';
import type { Backlog, Failures, LiveMessage, Totals, UnfinishedFilter, UnfinishedMessage } from './unfinished.ts';
import type { Endpoint, EndpointSelector, UrlGroup, UrlGroupLimits } from './url-groups.ts';
import type { WorkerStore } from './workers/store.ts';

/** What a store enforces on its own, for every project alike; 0 means unlimited. */
export interface StoreLimits {
  queuesMax: number;
  /** Attempts of a project in flight at most, with or without a lane. */
  parallelismMax: number;
  /**
   * Messages of a project on one day (UTC). A publish beyond it is refused; other new messages count, but are not
   * refused.
   */
  messagesPerDayMax: number;
  /** Bytes of a run's journal as deliveries show it; more is refused. */
  journalBytesMax: number;
  /** Messages of a run that is over which are cancelled in one transaction; only tests set it. */
  cancelledTogetherMax?: number;
}

/** The delivery slot of a settled message, offered to the next message of its lane. */
export interface Handoff {
  worker: WorkerId;
  claimToken: ClaimToken;
  /** Body bytes that the next message may have. */
  bytesMax: number;
}

/** `Next`: the form in which the next message of the lane is returned. */
export type Settled<Next = Claimed> =
  /** The message was claimed anew or is gone; nothing was written (P6). */
  | { kind: 'stale' }
  /** The run that should end with the message has changed; nothing was written: read the run again. */
  | { kind: 'runChanged' }
  /** The journal of the run that should end has another result of its last step; nothing was written (P8). */
  | { kind: 'stepTaken' }
  /**
   * `next`: the lane's next message, claimed in the same transaction under the token of the handoff. `follows`: how
   * each message of `change.follows` was saved, in their order; absent when there is none, or when a cancel took the
   * place of `change`. `isCancelled`: `changeIfCancelRequested` was saved in place of `change`. `isMoreLeft`: as in
   * `EndedAs`.
   */
  | { kind: 'saved'; next?: Next; follows?: Saved[]; isCancelled?: true; isMoreLeft?: true };

/** What became of a checkpoint. Whatever the answer but `saved`, nothing was written. */
export type Checkpointed =
  /** A message that would be done was claimed anew or is gone (P6). */
  | { kind: 'stale' }
  | { kind: 'runOver' }
  /** The run has changed since what enters its journal was made: read it again. */
  | { kind: 'runChanged' }
  /** The journal of the run would be too long. */
  | { kind: 'journalFull'; limit: number }
  /** The project has fewer messages left today than `follows` has. */
  | { kind: 'overDayLimit'; limit: number; remaining: number }
  /** How each of `follows` was saved, in their order; `dropped`: the journal had its entry already (P8). */
  | { kind: 'saved'; follows: Saved[] };

/** What a bulk cancel has done in one part of the messages. */
export interface CancelledPart {
  cancelled: number;
  /** Where the next part begins; absent: it was the last. */
  nextAfterKey?: MessageKey;
}

export interface MessageStore {
  /**
   * Saves `messages`, all of one project; answers in their order. A duplicate is not saved: its answer names the first
   * message. A message whose queue would be one too many is not saved either. All others are saved together or not at
   * all. Nothing is saved when the project has fewer messages left today than are given, duplicates included. Only
   * saved messages count for the day.
   */
  accept(messages: NewMessage[], nowMs: Millis, accountsVersion?: number): Promise<Accepted[]>;
  /** Claims due messages, each under a token that no earlier claim had. */
  claim(request: ClaimRequest, nowMs: Millis): Promise<ClaimAnswer>;
  /**
   * Saves a decision with what follows from it, and frees the slots of its message. The next one may take the
   * `handoff`.
   */
  settle(settlement: Settlement, nowMs: Millis, handoff?: Handoff): Promise<Settled>;
  /** Settles all of `done` and saves `follows` in the journal of their run, or does nothing. */
  checkpoint(checkpoint: Checkpoint, nowMs: Millis): Promise<Checkpointed>;
  /** Gives claims back uncounted, due at once: the end of a worker is not the endpoint's failure. Stale ones are skipped. */
  release(claims: ClaimRef[], nowMs: Millis): Promise<void>;
  /**
   * Gives back what every worker of an earlier process held (P7, embedded). Returns how many. `upToToken`: the last claim of those
   * processes; absent: all claims are theirs.
   */
  releaseAll(nowMs: Millis, upToToken?: ClaimToken): Promise<number>;
  /** The highest token of a claim: no later claim has it or a lower one. 0 without any. */
  lastClaim(): Promise<ClaimToken>;
  /**
   * Where projects have no limit any more, lets some of those messages go on that wait for one: returns how many. Locks their
   * projects.
   */
  sendHeldOn(nowMs: Millis): Promise<number>;
  /** Lines with messages, by project, then origin: the first `limit` after `after`. */
  waitingLines(piece: { after: OriginLine | undefined; limit: number }): Promise<OriginLine[]>;
  /** An unfinished message, or one delivered at `deliveredSinceMs` or later. */
  find(projectId: ProjectId, id: MessageId, deliveredSinceMs: Millis): Promise<Message | undefined>;
  /** What an unfinished message waits for (P14). `undefined` once it is finished. */
  findLive(projectId: ProjectId, id: MessageId, nowMs: Millis): Promise<LiveMessage | undefined>;
  /**
   * Unfinished messages that belong to no run, newest first, without their bodies. A page is short when few of many
   * messages match.
   */
  listUnfinished(
    args: InProjectAt & { filter: UnfinishedFilter; page: Omit<PageRequest, 'order'> },
  ): Promise<Page<UnfinishedMessage>>;
  /**
   * Cancels waiting messages at once and marks those in flight.
   * Returns how many were cancelled or marked; one that was marked before counts only in `cancelById`.
   */
  cancelById(projectId: ProjectId, ids: MessageId[], nowMs: Millis): Promise<number>;
  /**
   * The same for matching messages after `afterKey`, oldest first, in one limited part of them, `limit` at most. It skips
   * those that are marked already.
   */
  cancelMatching(
    projectId: ProjectId,
    filter: AttributeFilter,
    afterKey: MessageKey,
    nowMs: Millis,
    limit?: number,
  ): Promise<CancelledPart>;
  /** Makes a message due that waits for its delay or its next attempt. What holds it back otherwise goes on to do so. */
  makeDue(projectId: ProjectId, id: MessageId, nowMs: Millis): Promise<MadeDue>;
  /**
   * Reserves `count` consecutive numbers for keys and claim tokens, and returns the first. Both come from one sequence
   * that the store keeps: no number is given out twice, also after a restart.
   */
  reserveNumbers(count: number): Promise<number>;
}

/** A dead message as the DLQ shows it. */
export interface DeadMessage {
  /** `<failed ms>-<key>`: sorts by failure time. */
  dlqId: string;
  message: Message;
  deadLetter: DeadLetter;
}

export interface DeadMessageStore {
  listDead(args: InProject & { filter: DeadFilter; page: PageRequest }): Promise<Page<DeadMessage>>;
  findDead(args: InProject & { dlqId: string }): Promise<DeadMessage | undefined>;
  /** Those that exist, in the order of `dlqIds`. */
  findDeadMany(args: InProject & { dlqIds: string[] }): Promise<DeadMessage[]>;
  /** How many of them exist. */
  countDead(args: InProject & { dlqIds: string[] }): Promise<number>;
  /** Returns how many existed. */
  deleteDead(args: InProject & { dlqIds: string[] }): Promise<number>;
  /** Removes the entries and saves their successors in one transaction, or, when one is gone, changes nothing. */
  retryDead(args: InProjectAt & { retries: { dlqId: string; successor: NewMessage }[] }): Promise<Saved[] | 'missing'>;
}

/** What the database holds, of all projects. */
export interface Storage {
  /** Indexes and what is unused included. */
  bytes: number;
  /** Free for new data, as far as the database says at once. */
  unusedBytes?: number;
  /** Whether there are other projects. */
  isShared: boolean;
}

export interface BacklogStore {
  readBacklog(args: InProjectAt): Promise<Backlog>;
  readFailures(args: InProject): Promise<Failures>;
  /** Takes a few milliseconds at most. */
  readStorage(args: InProject): Promise<Storage>;
  readTotals(args: { nowMs: Millis }): Promise<Totals>;
}

export interface LogEntry {
  atMs: Millis;
  state: LogState;
  message: Message;
  detail?: LogDetail;
  /** Of a delivered message. */
  responseStatus?: number;
}

/** A place in the log of a project: entries are ordered by time, then by a number that is unique. */
export interface LogPosition {
  timeMs: Millis;
  n: number;
}

/** An entry of the log without bodies and headers. One of a run itself has the run's first message. */
export interface LiveEntry extends LogPosition {
  state: LogState | RunLogState;
  messageId: MessageId;
  url: string;
  method: HttpMethod;
  topicName?: string;
  queueName?: string;
  scheduleId?: string;
  flowControlKey?: string;
  labels?: string[];
  runId?: string;
  error?: string;
  nextDeliveryTimeMs?: Millis;
  responseStatus?: number;
}

export interface LogStore {
  listLogs(args: InProject & { filter: LogFilter; page: PageRequest }): Promise<Page<LogEntry>>;
  /** The first `count` entries, also those of runs, after `after` and up to `toMs`, without those numbered `except`. */
  listLogsAfter(
    args: InProject & { after: LogPosition; toMs: Millis; except: number[]; count: number },
  ): Promise<LiveEntry[]>;
  /** Where the last `count` entries up to `toMs` are, newest first; and how many there are after `after`, if given. */
  newestLogs(
    args: InProject & { toMs: Millis; count: number; after?: LogPosition },
  ): Promise<{ positions: LogPosition[]; countAfter: number }>;
}

export interface MinuteStore {
  /** Adds what `minutes` count to what is counted of them already. */
  addMinutes(args: InProject & { minutes: readonly Minute[] }): Promise<void>;
  /** The first `count` of the minutes that begin from `fromMs` to `toMs` and have something in them, oldest first. */
  listMinutes(args: InProject & { fromMs: Millis; toMs: Millis; count: number }): Promise<Minute[]>;
}

/** What there is to do in a cell that nobody may be serving. */
export interface CellLook {
  /** Until the next message, schedule or wait is due: `Infinity` when there is none. */
  dueInMs: Millis;
  /** The same of what the operator is to be told. */
  eventInMs: Millis;
  /** Whether work was left behind by a worker, waits in lines, or belongs to a project on the move. */
  isNeglected: boolean;
}

export interface UrlGroupStore {
  /**
   * Adds or updates endpoints by the rule of `withEndpoints`, and makes the group when it is missing. Past a limit it
   * changes nothing and answers which. A command that adds neither a group nor an endpoint is never refused.
   */
  addEndpoints(
    args: InProjectAt & { name: string; endpoints: Endpoint[]; limits: UrlGroupLimits },
  ): Promise<'saved' | 'tooManyGroups' | 'tooManyEndpoints'>;
  /** Selectors that match nothing are skipped; with its last endpoint the group goes, default headers included. */
  removeEndpoints(args: InProjectAt & { name: string; selectors: EndpointSelector[] }): Promise<'saved' | 'missing'>;
  /** Replaces the default headers; an empty map clears them. */
  setGroupHeaders(args: InProjectAt & { name: string; headers: HeaderMap }): Promise<'saved' | 'missing'>;
  /** Deleting one that does not exist changes nothing. */
  deleteUrlGroup(args: InProject & { name: string }): Promise<void>;
  findUrlGroup(args: InProject & { name: string }): Promise<UrlGroup | undefined>;
  /** Ordered by name. */
  listUrlGroups(args: InProject): Promise<UrlGroup[]>;
}

export interface RetentionStore {
  /**
   * Drops a bounded piece (at most about `rowsMax` rows) of what is past its time. Call again at once while it
   * answers true.
   */
  dropExpired(limits: {
    logsBeforeMs: Millis;
    deadBeforeMs: Millis;
    minutesBeforeMs: Millis;
    /** Flow-control keys are dropped when their last use was before this time. */
    keysUsedBeforeMs: Millis;
    nowMs: Millis;
    /** How far `nowMs` is ahead of the wall clock, by which the limits go. Default: not at all. */
    leadMs?: Millis;
    rowsMax: number;
  }): Promise<boolean>;
}

/** A whole store, as the composition root opens it. */
export interface Store {
  readonly messages: MessageStore;
  readonly dead: DeadMessageStore;
  readonly backlog: BacklogStore;
  readonly logs: LogStore;
  readonly minutes: MinuteStore;
  readonly runs: RunStore;
  readonly deadRuns: DeadRunStore;
  readonly runLogs: RunLogStore;
  readonly waiters: WaiterStore & WaiterListStore;
  readonly projects: ProjectStore;
  readonly cells: CellStore;
  readonly moves: ProjectMoveStore;
  readonly urlGroups: UrlGroupStore;
  readonly schedules: ScheduleStore;
  readonly queues: QueueStore;
  readonly keys: FlowKeyStore;
  readonly workers: WorkerStore;
  readonly operatorEvents: OperatorEventStore;
  readonly retention: RetentionStore;
  /**
   * From now on calls `listener` with the earliest due time of messages that no answer has reported: when a lane releases
   * them, and when other workers leave them waiting.
   */
  onDue(listener: (dueAtMs: Millis) => void): void;
  /** From now on calls `listener` when other workers put messages into the line of an origin. */
  onWaitingLine(listener: (line: OriginLine) => void): void;
  /** From now on calls `listener` when other workers have changed projects, tokens or keys. Heartbeats show this too. */
  onAccountsChanged(listener: () => void): void;
  /**
   * From now on calls `listener` with claims whose messages were cancelled, also by other workers, also claims that others have.
   * It may not be told of all.
   */
  onCancelled(listener: (claimTokens: ClaimToken[]) => void): void;
  /** From now on calls `listener` when a command failed that may have been saved all the same. */
  onCommitUnknown(listener: () => void): void;
  /**
   * This store is one of several cells: from now on, commands of projects that are not here are refused with
   * `ProjectAway`, and work that nobody asks for leaves their rows alone.
   */
  guardProjects(): void;
  /** Resolves when the store reads and saves; rejects when it does not. For `/readyz`. */
  ping(): Promise<void>;
  close(): Promise<void>;
}
