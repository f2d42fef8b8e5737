/** What does each command do, beyond the store? Those about runs are in `runs/workflows.ts`. */
import { dailyLimitReached } from '../protocol/rate-limits.ts';
import type { CellAway, Engine } from './commands.ts';
import type { EngineDeps } from './deps.ts';
import type { DueLoop } from './due-loop.ts';
import type { AttributeFilter, LogFilter } from './filters.ts';
import { lineOf, lineTo } from './lanes/origin-line.ts';
import { LiveFeeds } from './live/feed.ts';
import type { AcceptContext, Draft } from './messages/accept.ts';
import { type Accepted, savedOf } from './messages/accepted.ts';
import { type DeadRetryOverride, succeed } from './messages/dead-retry.ts';
import type { Dispatcher } from './messages/dispatcher.ts';
import {
  type ExplainedBacklog,
  type ExplainedMessage,
  type Explanation,
  explain,
  explainKey,
  explainLine,
  isRetrying,
} from './messages/explain.ts';
import { dlqIdIn, explainFinished } from './messages/explain-finished.ts';
import { type Intake, OF_CLIENT } from './messages/intake.ts';
import { IntakeHealth } from './messages/intake-health.ts';
import type { Admitted, PublishCommand, Published, PublishOutcome } from './messages/publish-command.ts';
import { type Leave, PublishGate } from './messages/publish-gate.ts';
import type { MinuteCounter } from './minutes/counter.ts';
import type {
  ClaimToken,
  LogState,
  Message,
  MessageId,
  MessageKey,
  Millis,
  NewMessage,
  ProjectId,
  WorkerId,
} from './model.ts';
import type { OperatorEvents } from './operator-events/events.ts';
import type { StoreWatch } from './operator-events/store-watch.ts';
import type { Page, PageRequest } from './page.ts';
import { storeOf } from './project-store.ts';
import type { Reports } from './reports.ts';
import type { RetentionLoop } from './retention.ts';
import type { JournalBodies } from './runs/journal-bodies.ts';
import { type WorkflowCommands, Workflows } from './runs/workflows.ts';
import { ScheduleCommands } from './schedules/commands.ts';
import { scheduleLoop } from './schedules/loop.ts';
import { StoreUnavailable } from './store-errors.ts';
import type { LiveMessage, Totals, UnfinishedFilter } from './unfinished.ts';
import type { Heartbeat } from './workers/heartbeat.ts';
import type { Numbers } from './workers/numbers.ts';

/** Log events that are read to explain a finished message. Retries beyond them are not counted. */
const EXPLAINED_EVENTS_MAX = 1000;

/** For so long an event of another cell is known to be saved: its worker tries again within seconds. */
const EVENT_ONCE_MS = 86_400_000;

/** Dead messages retried in one transaction: their bodies are in memory together. */
const RETRY_PIECE = 16;

/** Messages of a bulk cancel that are looked for at a time. */
const LOOKED_FOR = 500;

/** Those that are cancelled in one transaction, about a millisecond of work: publishes never wait for more. */
const CANCELLED_TOGETHER = 50;

/** Messages of a deleted queue that are cancelled in one transaction. Other commands run between two of these. */
const EMPTY_PIECE = 50;

/** Made before the engine: recovery and the first read of the store come first. */
interface Parts {
  numbers: Numbers;
  dispatcher: Dispatcher;
  left: DueLoop;
  /** Present while claims of an earlier process are still to be released. */
  release: DueLoop | undefined;
  retention: RetentionLoop;
  bodies: JournalBodies;
  reports: Reports;
  minutes: MinuteCounter;
  heartbeat: Heartbeat | undefined;
  operatorEvents: OperatorEvents | undefined;
  watch: StoreWatch | undefined;
}

export class RunningEngine implements Omit<Engine, keyof WorkflowCommands> {
  /** Has the commands and reads about runs. */
  readonly workflows: Workflows;
  readonly #deps: EngineDeps;
  readonly #parts: Parts;
  readonly #schedules: DueLoop;
  readonly #intake: Intake;
  readonly #health: IntakeHealth;
  readonly #gate: PublishGate;
  #quiescing: Promise<void> | undefined;
  #draining: Promise<void> | undefined;

  readonly storeOf: Engine['storeOf'];
  readonly retention: Engine['retention'];
  readonly watchLog: Engine['watchLog'];
  readonly createSchedule: Engine['createSchedule'];
  readonly setSchedulePaused: Engine['setSchedulePaused'];

  constructor(deps: EngineDeps, parts: Parts) {
    const { numbers, dispatcher } = parts;
    const { intake } = dispatcher;
    this.#deps = deps;
    this.#parts = parts;
    this.#intake = intake;
    this.#health = new IntakeHealth(deps.clock);
    this.#gate = new PublishGate(deps.clock, deps.log, deps.settings.publishDelayTargetMs, dispatcher.backlog);
    this.retention = { logsMs: deps.settings.logRetentionMs, dlqMs: deps.settings.dlqRetentionMs };
    this.storeOf = (projectId) => storeOf(projectId, deps.store, deps.clock);
    const feeds = new LiveFeeds(deps);
    this.watchLog = (projectId, watcher) => feeds.watch(projectId, watcher);
    const contextOf = (projectId: ProjectId): AcceptContext => this.#contextOf(projectId);
    this.#schedules = scheduleLoop({ ...deps, ...parts, intake, contextOf });
    const commands = new ScheduleCommands({ ...deps, numbers, noteNext: (atMs) => this.#schedules.noteNext(atMs) });
    this.createSchedule = commands.create.bind(commands);
    this.setSchedulePaused = commands.setPaused.bind(commands);
    this.workflows = new Workflows({ ...deps, ...parts, intake, contextOf });
  }

  /** Does what has become due since the last process ended, and from then on what becomes due. */
  startLoops(): void {
    const { clock, log } = this.#deps;
    let times = 0;
    clock.onJump((byMs) => log.warn('clock_set', { byMs, times: ++times }));
    this.#schedules.wake();
    this.workflows.waiters.wake();
    this.#parts.left.wake();
    this.#parts.operatorEvents?.start(this.#intake);
    this.#parts.watch?.start();
    this.#parts.heartbeat?.start({
      dispatcher: this.#parts.dispatcher,
      noteSchedule: (atMs) => this.#schedules.noteNext(atMs),
      noteDeadline: (atMs) => this.workflows.waiters.noteNext(atMs),
      noteEnding: () => this.#parts.left.noteNext(0),
      noteDeath: () => {
        this.#parts.retention.hasten();
        this.#parts.operatorEvents?.noteSaved(); // also what the dead worker had saved
      },
    });
  }

  async publish(projectId: ProjectId, commands: PublishCommand[], admitted?: Admitted): Promise<PublishOutcome[]> {
    if (commands.length === 0) return [];
    let leave: Leave | undefined;
    try {
      // A publish that continues a run does not wait in line, since its run waits for it.
      const entered = commands.some(continuesRun) ? undefined : this.#gate.enter(projectId, commands.length);
      leave = entered instanceof Promise ? await entered : entered;
      const { drafts, accepted, context } = await this.workflows.publisher.publish(projectId, commands, admitted);
      leave?.();
      leave = undefined;
      this.#health.noteSaved();
      const [first] = accepted;
      if (first?.kind === 'overDayLimit') throw dailyLimitReached(first.limit, first.remaining, context.nowMs);
      return await this.#withLostDuplicates(
        projectId,
        drafts.map((draft, index) => publishedAs(draft, accepted[index])),
      );
    } catch (error) {
      leave?.(error);
      this.#health.noteFailure(error);
      this.#parts.watch?.noteFailure(error);
      throw error;
    }
  }

  /** A publisher that repeats a publish must learn that the first one has come to nothing, and nothing was made now. */
  async #withLostDuplicates(projectId: ProjectId, outcomes: PublishOutcome[]): Promise<PublishOutcome[]> {
    const duplicates = [...new Set(outcomes.flatMap((each) => (isDuplicate(each) ? [each.messageId] : [])))];
    const states = new Map<MessageId, LogState>();
    for (let at = 0; at < duplicates.length; at += IDS_PER_READ) {
      const messageId = duplicates.slice(at, at + IDS_PER_READ);
      const filter: LogFilter = { messageId, state: ['FAILED', 'CANCELED'] };
      const page = { count: messageId.length, order: 'latestFirst' } as const;
      const { items } = await this.#deps.store.logs.listLogs({ projectId, filter, page }).catch((error: unknown) => {
        // What was published is saved: an error would tell the client otherwise.
        if (error instanceof StoreUnavailable) return { items: [] };
        throw error;
      });
      for (const { message, state } of items) states.set(message.id, state);
    }
    return outcomes.map((each) => {
      const state = isDuplicate(each) ? states.get(each.messageId) : undefined;
      return isDuplicate(each) && (state === 'FAILED' || state === 'CANCELED') ? { ...each, state } : each;
    });
  }

  async saveEvent(_: ProjectId, message: Message, hash: string): Promise<void> {
    const { store, clock } = this.#deps;
    const nowMs = clock.nowMs();
    const deduplication = { hash, expiresAtMs: nowMs + EVENT_ONCE_MS };
    const save = (newMessages: NewMessage[]) => store.messages.accept({ messages: newMessages, nowMs });
    await this.#intake.save([{ message, deduplication }], save, savedOf);
  }

  checkAdmission(projectId: ProjectId): void {
    this.#gate.check(projectId);
  }

  get inFlight(): number {
    return this.#parts.dispatcher.inFlight.count;
  }

  busiestProjects(count: number): [ProjectId, number][] {
    return this.#parts.dispatcher.inFlight.busiest(count);
  }

  readTotals(): Promise<Totals> {
    const { store, clock } = this.#deps;
    return store.backlog.readTotals({ nowMs: clock.nowMs() });
  }

  get workersAlive(): number | undefined {
    return this.#parts.heartbeat?.workersAlive;
  }

  get otherWorkers(): readonly WorkerId[] {
    return this.#parts.heartbeat?.others ?? [];
  }

  async ping(): Promise<readonly CellAway[]> {
    this.#health.check();
    await this.#deps.store.ping();
    return [];
  }

  holds(claimToken: ClaimToken): boolean {
    return this.#parts.dispatcher.holds(claimToken);
  }

  findMessage(projectId: ProjectId, id: MessageId): Promise<Message | undefined> {
    const { store, clock, settings } = this.#deps;
    return store.messages.find({ projectId, id, deliveredSinceMs: clock.nowMs() - settings.deliveredGraceMs });
  }

  async explainMessage(projectId: ProjectId, id: MessageId): Promise<Explanation | undefined> {
    const { store, clock } = this.#deps;
    const live = await store.messages.findLive({ projectId, id, nowMs: clock.nowMs() });
    if (live) return this.#explain(live, await this.#failureOf(projectId, live));
    const page = { count: EXPLAINED_EVENTS_MAX, order: 'latestFirst' } as const;
    const log = (await store.logs.listLogs({ projectId, filter: { messageId: [id] }, page })).items;
    const dlqId = dlqIdIn(log);
    const isInDlq = dlqId !== undefined && (await store.dead.countDead({ projectId, dlqIds: [dlqId] })) > 0;
    return explainFinished(log, { isInDlq });
  }

  /** What its latest retry is for. */
  async #failureOf(projectId: ProjectId, live: LiveMessage): Promise<string | undefined> {
    const { store, clock } = this.#deps;
    if (!isRetrying(live, clock.nowMs())) return undefined;
    const filter = { messageId: [live.message.id], state: ['ERROR' as const] };
    const page = { count: 1, order: 'latestFirst' } as const;
    return (await store.logs.listLogs({ projectId, filter, page })).items[0]?.detail?.error;
  }

  #explain(live: LiveMessage, failure?: string): Explanation {
    const held =
      live.state.kind === 'origin' ? this.#parts.dispatcher.inFlight.whatHolds(lineTo(live.message)) : undefined;
    return explain(live, this.#deps.clock.nowMs(), { held, failure });
  }

  async listUnfinished(
    projectId: ProjectId,
    filter: UnfinishedFilter,
    page: Omit<PageRequest, 'order'>,
  ): Promise<Page<ExplainedMessage>> {
    const { store, clock } = this.#deps;
    const found = await store.messages.listUnfinished({ projectId, filter, page, nowMs: clock.nowMs() });
    return { ...found, items: found.items.map((live) => ({ ...live, explanation: this.#explain(live) })) };
  }

  async readBacklog(projectId: ProjectId): Promise<ExplainedBacklog> {
    const { store, clock } = this.#deps;
    const nowMs = clock.nowMs();
    const { origins, queues, keys, ...backlog } = await store.backlog.readBacklog({ projectId, nowMs });
    return {
      ...backlog,
      origins: origins.map((line) => {
        const { reason } = explainLine(
          line.origin,
          this.#parts.dispatcher.inFlight.whatHolds(lineOf(projectId, line.origin)),
        );
        return { ...line, reason, isHeldBack: this.#parts.dispatcher.inFlight.isHeldBack(line.origin) };
      }),
      queues: queues.map((line) => ({ ...line, reason: line.isPaused ? 'queue_paused' : 'queued' })),
      keys: keys.flatMap((line) => {
        const { reason } = explainKey(line.key, nowMs);
        return reason === 'key_turn' || line.waiting.count === 0 ? [] : { ...line, reason };
      }),
    };
  }

  async cancelMatching(projectId: ProjectId, filter: AttributeFilter, count = Infinity): Promise<number> {
    const { store, clock } = this.#deps;
    let cancelled = 0;
    let from: MessageKey | undefined = -1;
    while (from !== undefined && cancelled < count) {
      const limit = Math.min(count - cancelled, LOOKED_FOR);
      const found: { keys: MessageKey[]; nextAfterKey?: MessageKey } = await store.messages.findCandidates({
        projectId,
        filter,
        afterKey: from,
        limit,
      });
      for (let at = 0; at < found.keys.length; at += CANCELLED_TOGETHER) {
        const keys = found.keys.slice(at, at + CANCELLED_TOGETHER);
        cancelled += await store.messages.cancelCandidates({ projectId, keys, nowMs: clock.nowMs() });
      }
      from = found.nextAfterKey;
    }
    return cancelled;
  }

  async retryDead(
    projectId: ProjectId,
    dlqIds: string[],
    override: DeadRetryOverride = {},
  ): Promise<MessageId[] | undefined> {
    const wanted = [...new Set(dlqIds)];
    if ((await this.#deps.store.dead.countDead({ projectId, dlqIds: wanted })) < wanted.length) return undefined;
    const messageIds: MessageId[] = [];
    for (let at = 0; at < wanted.length; at += RETRY_PIECE) {
      const piece = wanted.slice(at, at + RETRY_PIECE);
      const retried = await this.#retry(projectId, piece, override);
      // An entry is gone since the count: another request retried or deleted it.
      if (retried === undefined && messageIds.length === 0) return undefined;
      messageIds.push(...(retried ?? (await this.#retryThoseLeft(projectId, piece, override))));
    }
    return messageIds;
  }

  /** Of entries of which some are gone. */
  async #retryThoseLeft(projectId: ProjectId, dlqIds: string[], override: DeadRetryOverride): Promise<MessageId[]> {
    const left = await this.#deps.store.dead.findDeadMany({ projectId, dlqIds });
    if (left.length === 0) return [];
    const idsLeft = left.map(({ dlqId }) => dlqId);
    return (
      (await this.#retry(projectId, idsLeft, override)) ?? (await this.#retryThoseLeft(projectId, idsLeft, override))
    );
  }

  /** Publishes all entries anew, or, when one of them is gone, none. */
  async #retry(projectId: ProjectId, dlqIds: string[], override: DeadRetryOverride): Promise<MessageId[] | undefined> {
    const { store } = this.#deps;
    const dead = await store.dead.findDeadMany({ projectId, dlqIds });
    if (dead.length < dlqIds.length) return undefined;
    const firstKey = await this.#parts.numbers.take(dead.length);
    const context = this.#contextOf(projectId);
    const drafts = dead.map((entry, index) => ({ message: succeed(entry, firstKey + index, override, context) }));
    const outcome = await this.#intake.save(
      drafts,
      (successors) => {
        const retries = successors.map((successor, index) => ({ dlqId: dlqIds[index] ?? '', successor }));
        return store.dead.retryDead({ projectId, retries, nowMs: context.nowMs });
      },
      (saved) => (saved === 'missing' ? [] : saved),
      OF_CLIENT,
    );
    return outcome === 'missing' ? undefined : drafts.map(({ message }) => message.id);
  }

  async deleteQueue(projectId: ProjectId, name: string): Promise<void> {
    const { store, clock } = this.#deps;
    const queue = await store.queues.deleteQueue({ projectId, name, nowMs: clock.nowMs() });
    while (queue && (await store.queues.emptyQueue({ ...queue, count: EMPTY_PIECE, nowMs: clock.nowMs() })));
  }

  quiesce(limitMs: Millis): Promise<void> {
    this.#quiescing ??= this.#quiesce(limitMs);
    return this.#quiescing;
  }

  drain(limitMs: Millis): Promise<void> {
    this.#draining ??= this.quiesce(limitMs).then(() => this.#parts.heartbeat?.stop());
    return this.#draining;
  }

  async #quiesce(limitMs: Millis): Promise<void> {
    this.#intake.close();
    this.#gate.close();
    this.#parts.heartbeat?.noteDraining();
    await Promise.all([
      this.#parts.dispatcher.drain(limitMs),
      this.#parts.retention.stop(),
      this.#schedules.stop(),
      this.workflows.waiters.stop(),
      this.#parts.left.stop(),
      this.#parts.release?.stop(),
      this.#parts.operatorEvents?.stop(),
      this.#parts.watch?.stop(),
    ]);
    await this.#parts.minutes.stop();
  }

  #contextOf(projectId: ProjectId): AcceptContext {
    const { clock, randomness, settings, spans } = this.#deps;
    return {
      projectId,
      nowMs: clock.nowMs(),
      leadMs: clock.leadMs,
      randomness,
      deduplicationWindowMs: settings.deduplicationWindowMs,
      lazyAboveBytes: settings.lazyFetchBytes,
      isTraced: spans !== undefined,
    };
  }
}

/** A step of a run, a run that another run has invoked, or the second phase of a trigger. */
function continuesRun({ options: { run }, invocation }: PublishCommand): boolean {
  return invocation !== undefined || run?.kind === 'append' || run?.isBySdk === true;
}

/** As a filter of logs takes them. */
const IDS_PER_READ = 1_000;

/** A run's own duplicates are the library's matter. */
function isDuplicate(outcome: PublishOutcome): outcome is Published {
  return outcome !== 'tooManyQueues' && outcome.deduplicated && outcome.run === undefined;
}

function publishedAs({ message, run }: Draft, accepted: Accepted | undefined): PublishOutcome {
  if (accepted?.kind === 'tooManyQueues') return 'tooManyQueues';
  const isDuplicate = accepted?.kind === 'duplicate';
  const published: Published = {
    messageId: isDuplicate ? accepted.messageId : message.id,
    url: message.url,
    deduplicated: isDuplicate,
  };
  const begun = isDuplicate ? accepted.run : run;
  if (begun) published.run = { id: begun.id, createdAtMs: begun.createdAtMs };
  return published;
}
