/**
 * What the engine asks of a store, one small interface for each noun. Every method is one transaction (reads: one
 * snapshot), is given `nowMs` where time matters, and reads no clock. A promise that resolves says that the
 * change is durable (P1). All throw `StoreUnavailable` when nothing was written and the caller may try again.
 */
import type { HeaderMap, HttpMethod } from '../protocol/settings.ts';
import type { AttributeFilter, DeadFilter, LogFilter } from './filters.ts';
import type { FlowKey, FlowPin, Queue } from './lanes/lanes.ts';
import type { OriginLine } from './lanes/origin-line.ts';
import type { Accepted, AcceptedState, Saved } from './messages/accepted.ts';
import type { ClaimAnswer, ClaimRequest } from './messages/claims.ts';
import type { Minute } from './minutes/minute.ts';
import type {
  CellId,
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
import type { Schedule, ScheduleChange, TriggeredMessage } from './schedules/schedules.ts';
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
  /** Gives back what every worker of an earlier process held (P7, embedded). Returns how many. */
  releaseAll(nowMs: Millis): Promise<number>;
  /** Lines with messages, by project, then origin: all of them, or the first `limit` after `after`. */
  waitingLines(piece?: { after: OriginLine | undefined; limit: number }): Promise<OriginLine[]>;
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
   * The same for matching messages after `afterKey`, oldest first, in one limited part of them. It skips those that are
   * marked already.
   */
  cancelMatching(
    projectId: ProjectId,
    filter: AttributeFilter,
    afterKey: MessageKey,
    nowMs: Millis,
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
  retryDead(
    args: InProjectAt & { retries: { dlqId: string; successor: NewMessage }[] },
  ): Promise<AcceptedState[] | 'missing'>;
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
  /** Of a delivered message. Absent: an earlier version has written the entry. */
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

export interface Project {
  projectId: ProjectId;
  /** `UserID` of the project's tokens. */
  name: string;
  createdAtMs: Millis;
}

/** One of several stores among which projects are divided. */
export interface Cell {
  cellId: CellId;
  name: string;
  /** Where its database is, sealed like signing keys; empty for the first cell, which is where the list of cells is. */
  sealedUrl: string;
  addedAtMs: Millis;
  /** Whether new projects go elsewhere. */
  isDraining: boolean;
}

/** `publish-only` may publish, enqueue and send batches; `read-only` may read, signing keys excepted. */
export const TOKEN_SCOPES = ['full', 'publish-only', 'read-only'] as const;
export type TokenScope = (typeof TOKEN_SCOPES)[number];

export interface Token {
  /** SHA-256 of the whole token, base64url: the token itself is kept nowhere. */
  tokenHash: string;
  projectId: ProjectId;
  scope: TokenScope;
  /** What its owner calls it. */
  name?: string;
  createdAtMs: Millis;
  /** Exact to about an hour; absent: never. */
  lastUsedAtMs?: Millis;
}

/** A change that a full token of the project makes. In the store's transaction, that token must still be there. */
export interface InProjectByToken extends InProject {
  /** Its hash. */
  by: string;
}

/** Projects, tokens and keys, all of one moment. */
export interface AccountsState {
  /** Grows with each change of a project, token or key, except the last use of a token. */
  version: number;
  projects: (Project & { signingKeys: SealedKeys; cellId: CellId })[];
  tokens: Token[];
  /** Empty as long as there is only one. */
  cells: Cell[];
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

/** The first three are the directory's, the others of each cell's own store. */
export interface CellStore {
  /** Ordered by their numbers; empty as long as there is only one. */
  listCells(): Promise<Cell[]>;
  /** Answers the cell of this name if there is one. `firstName`: what the first cell is called, if it was the only one. */
  addCell(args: { name: string; sealedUrl: string; nowMs: Millis; firstName: string }): Promise<Cell>;
  setCellDraining(args: { cellId: CellId; isDraining: boolean }): Promise<void>;
  /** Makes the store, which nobody uses yet, a cell, and answers which one it is: perhaps it was another before. */
  beginCell(args: { cellId: CellId }): Promise<CellId>;
  /** The cell that the store is; undefined: it has never been told. */
  readCellId(): Promise<CellId | undefined>;
  /** Lets projects live there that are new to it. */
  adoptProjects(args: { projects: Project[] }): Promise<void>;
}

/** `cancelled`: what was copied is being removed again. Once it is `switched` the project is the new cell's. */
export type MovePhase = 'copying' | 'paused' | 'switched' | 'cancelled';

/** A project on its way from one cell to another. */
export interface ProjectMove extends InProject {
  fromCell: CellId;
  toCell: CellId;
  phase: MovePhase;
  begunAtMs: Millis;
  /** The command that moves it. */
  mover: string;
  /** When that command last said that it goes on. */
  seenAtMs: Millis;
}

/** Nothing is done for a command whose move another one has taken over. */
export interface InMove extends InProject {
  mover: string;
}

/** What the directory keeps of moves, so that one that was interrupted goes on. */
export interface ProjectMoveStore {
  listMoves(): Promise<ProjectMove[]>;
  findMove(args: InProject): Promise<ProjectMove | undefined>;
  /** Answers the move of the project, which may be another one that has begun before; undefined: it lives elsewhere. */
  beginMove(args: Omit<ProjectMove, 'phase' | 'seenAtMs'>): Promise<ProjectMove | undefined>;
  /**
   * Says that `mover` goes on, and takes over from a command that has said so before `goneBeforeMs` last. False: another
   * command moves the project, or none does.
   */
  keepMove(args: InMove & { nowMs: Millis; goneBeforeMs?: Millis }): Promise<boolean>;
  setMovePhase(args: InMove & { phase: Exclude<MovePhase, 'switched'> }): Promise<void>;
  /** From now on the project lives in the new cell. False: it is not paused by this command, since another one has taken over or cancelled. */
  switchMove(args: InMove): Promise<boolean>;
  /** Forgets a move that is done, or cancelled. */
  endMove(args: InMove): Promise<void>;
}

export interface ProjectStore {
  readAccounts(): Promise<AccountsState>;
  /**
   * Creates the project or finds it by name. `signingKeys` are kept only when it is new. They come sealed. A new one
   * lives in the cell `cellId`; in the one with the fewest, where that is not given.
   */
  ensureProject(args: { name: string; signingKeys: SealedKeys; nowMs: Millis; cellId?: CellId }): Promise<Project>;
  listProjects(): Promise<Project[]>;
  /** Adding one that exists changes nothing. */
  addToken(token: Token): Promise<void>;
  /** By project, then in the order in which they were made. */
  listTokens(): Promise<Token[]>;
  /** Those of one project, in the order in which they were made. */
  listTokensOf(args: InProject): Promise<Token[]>;
  /** False when there is no such token. */
  removeToken(args: { tokenHash: string }): Promise<boolean>;
  /** `revoked`: the token `by` is gone. `tooMany`: the project has `tokensMax` tokens already. */
  makeToken(
    args: InProjectByToken & { token: Omit<Token, 'projectId'>; tokensMax: number },
  ): Promise<'made' | 'revoked' | 'tooMany'>;
  /**
   * Removes a token by its id, and answers its hash. `revoked`: the token `by` is gone. `lastFull`: the project would
   * have no full token left; of several removals at once, the last one gets this.
   */
  revokeToken(
    args: InProjectByToken & { tokenId: string },
  ): Promise<{ tokenHash: string } | 'missing' | 'lastFull' | 'revoked'>;
  noteTokenUse(args: { tokenHash: string; nowMs: Millis }): Promise<void>;
  signingKeys(args: InProject): Promise<SealedKeys>;
  /** Replaces the pair only while it still is `expected`; answers what is in force afterwards. */
  replaceSigningKeys(args: InProject & { expected: SealedKeys; next: SealedKeys }): Promise<SealedKeys>;
}

/** Signing keys as they lie in the store: encrypted by `config`'s encryption key. Opaque to the store. */
export interface SealedKeys {
  current: string;
  next: string;
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

/** A schedule that is due. */
export interface DueSchedule {
  schedule: Schedule;
  /** Whether a message of the latest trigger is unfinished. Only read for schedules whose triggers must not overlap. */
  isBusy: boolean;
}

export interface ScheduleView {
  schedule: Schedule;
  /** The messages of the latest trigger that the store still knows, in the order of its endpoints. */
  lastMessages: TriggeredMessage[];
}

export interface ScheduleStore {
  /**
   * Creates the schedule, or replaces the one with its key, which must have `fromVersion`; `undefined`: there must be
   * none. Answers `'stale'`, with nothing written, when this is not so. A project that has `schedulesMax` schedules (0:
   * any number) gets no more.
   */
  saveSchedule(
    schedule: Schedule,
    fromVersion: number | undefined,
    schedulesMax: number,
  ): Promise<'saved' | 'stale' | 'tooMany'>;
  /**
   * Makes each change and answers the states of its messages. `'stale'`, with nothing of that change done, when the
   * schedule is gone or has another version by now. A missing queue is made.
   */
  changeSchedules(changes: ScheduleChange[], nowMs: Millis): Promise<(AcceptedState[] | 'stale')[]>;
  /** Deleting one that does not exist changes nothing. */
  deleteSchedule(args: InProject & { id: string }): Promise<void>;
  findSchedule(args: InProject & { id: string }): Promise<ScheduleView | undefined>;
  /** Ordered by creation. Only the first 16 MiB of bodies are read; the bodies of the other schedules are left empty. */
  listSchedules(args: InProject): Promise<ScheduleView[]>;
  /**
   * Up to `limit` schedules that are due, earliest first, with up to about `bytesMax` bytes, but at least one. When none
   * is due, `nextAtMs` is the earliest time at which one will be.
   */
  dueSchedules(request: {
    nowMs: Millis;
    limit: number;
    bytesMax: number;
  }): Promise<{ due: DueSchedule[]; nextAtMs: Millis | undefined }>;
  /**
   * Schedules, not paused, that were already triggered for times after `passedAfterMs`. `piece`: about how many at
   * most.
   */
  strandedSchedules(passedAfterMs: Millis, piece: { limit: number; bytesMax: number }): Promise<Schedule[]>;
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
    rowsMax: number;
  }): Promise<boolean>;
}

export interface QueueStore {
  /** Makes a queue or replaces its settings; what exists is never refused. */
  saveQueue(
    args: InProjectAt & { name: string; parallelism: number; isPaused: boolean },
  ): Promise<'saved' | 'tooManyQueues'>;
  setQueuePaused(args: InProjectAt & { name: string; isPaused: boolean }): Promise<'saved' | 'missing'>;
  /**
   * Removes the queue at once; the caller then cancels its messages with `emptyQueue`. `undefined`: there is no such
   * queue. If the caller crashes before it is done, `dropExpired` does the rest: a worker that notices the crash calls
   * it at once.
   */
  deleteQueue(args: InProjectAt & { name: string }): Promise<DeletedQueue | undefined>;
  /** Cancels a piece of the messages of a deleted queue; answers whether more may be left. */
  emptyQueue(args: DeletedQueue & { count: number; nowMs: Millis }): Promise<boolean>;
  findQueue(args: InProject & { name: string }): Promise<Queue | undefined>;
  /** Ordered by name: up to `count` (all) of those after `after`. */
  listQueues(args: InProject & { after?: string; count?: number }): Promise<Queue[]>;
}

export interface DeletedQueue extends InProject {
  queueId: number;
}

export interface FlowKeyStore {
  /** Pausing makes the key if need be; resuming one that does not exist changes nothing. */
  setKeyPaused(args: InProjectAt & { key: string; isPaused: boolean }): Promise<void>;
  /** Makes the key if need be. */
  pinKey(args: InProjectAt & { key: string; pin: FlowPin }): Promise<void>;
  /** The last values stay in force until the next message sets new ones. */
  unpinKey(args: InProjectAt & { key: string; parallelism: boolean; rate: boolean }): Promise<void>;
  resetKeyRate(args: InProjectAt & { key: string }): Promise<void>;
  findKey(args: InProjectAt & { key: string }): Promise<FlowKey | undefined>;
  /** Ordered by key: up to `count` of those after `after` that contain `search`. */
  listKeys(args: InProjectAt & { search: string; after: string; count: number }): Promise<FlowKey[]>;
  /** Attempts of the project in flight, of all workers. */
  countInFlight(args: InProject): Promise<number>;
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
