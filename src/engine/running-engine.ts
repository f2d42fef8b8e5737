/** A running engine: start, publish, health and shutdown. The other commands of the engine are in `commands.ts`. */
import { dailyLimitReached } from '../protocol/rate-limits.ts';
import { type EndPublish, IntakeHealth, PublishGate } from './admission/publish-gate.ts';
import type { Commands, Engine, UnavailableCell } from './commands.ts';
import type { EngineContext } from './context.ts';
import type { LogFilter } from './lists/filters.ts';
import type { Totals } from './lists/unfinished.ts';
import { LiveFeeds } from './live/feed.ts';
import type { DueLoop } from './loops/due-loop.ts';
import { RetentionLoop } from './loops/retention.ts';
import type { Draft } from './messages/accept.ts';
import type { Accepted } from './messages/accepted.ts';
import type { Admitted, PublishCommand, Published, PublishOutcome } from './messages/publish-command.ts';
import type { ClaimToken, LogState, MessageId, Millis, ProjectId, WorkerId } from './model.ts';
import { StoreWatch } from './operator-events/store-watch.ts';
import { storeOf } from './project-store.ts';
import { publishAll } from './runs/publish.ts';
import { StoreUnavailable } from './store-errors.ts';
import type { Heartbeat } from './workers/heartbeat.ts';

/** The loops that recovery has started. */
export interface RecoveryLoops {
  heartbeat?: Heartbeat;
  release?: DueLoop | undefined;
}

export class RunningEngine implements Omit<Engine, keyof Commands> {
  readonly #context: EngineContext;
  readonly #retention: RetentionLoop;
  readonly #watch: StoreWatch | undefined;
  readonly #heartbeat: Heartbeat | undefined;
  /** Releases the claims of an earlier process. Set if the release failed at the start of the engine. */
  readonly #release: DueLoop | undefined;
  readonly #health: IntakeHealth;
  readonly #gate: PublishGate;
  #quiescing: Promise<void> | undefined;
  #draining: Promise<void> | undefined;

  readonly storeOf: Engine['storeOf'];
  readonly retention: Engine['retention'];
  readonly watchLog: Engine['watchLog'];

  constructor(context: EngineContext, { heartbeat, release }: RecoveryLoops) {
    const { store, clock, log, settings, dispatcher, operatorEvents, dropsExpired = true } = context;
    this.#context = context;
    this.#heartbeat = heartbeat;
    this.#release = release;
    this.#retention = new RetentionLoop(context);
    const isWatching = () => dropsExpired && (heartbeat?.isFirst ?? true);
    this.#watch = operatorEvents && new StoreWatch(context, operatorEvents, isWatching);
    this.#health = new IntakeHealth(clock);
    this.#gate = new PublishGate(clock, log, settings.publishDelayTargetMs, dispatcher.backlog);
    this.retention = { logsMs: settings.logRetentionMs, dlqMs: settings.dlqRetentionMs };
    this.storeOf = (projectId) => storeOf(projectId, store, clock);
    const feeds = new LiveFeeds(store.logs, clock);
    this.watchLog = (projectId, watcher) => feeds.watch(projectId, watcher);
  }

  /** Starts the loops, which also do the work that became due while no process ran. */
  startLoops(): void {
    const {
      clock,
      log,
      dispatcher,
      schedules,
      waiters,
      cancellations,
      operatorEvents,
      dropsExpired = true,
    } = this.#context;
    const retention = this.#retention;
    if (dropsExpired) retention.start();
    let times = 0;
    clock.onJump((byMs) => log.warn('clock_set', { byMs, times: ++times }));
    for (const loop of [schedules, waiters, cancellations]) loop.wake();
    operatorEvents?.start(dispatcher.intake);
    this.#watch?.start();
    this.#heartbeat?.start({
      dispatcher,
      noteSchedule: (atMs) => schedules.noteNext(atMs),
      noteDeadline: (atMs) => waiters.noteNext(atMs),
      noteEndedRun: () => cancellations.noteNext(0),
      noteExpiredWorker: () => {
        retention.hasten();
        operatorEvents?.noteSaved(); // the dead worker may have left saved events, too
      },
    });
  }

  async publish(projectId: ProjectId, commands: PublishCommand[], admitted?: Admitted): Promise<PublishOutcome[]> {
    if (commands.length === 0) return [];
    let endPublish: EndPublish | undefined;
    try {
      // A publish that continues a run does not wait in the queue, since the run waits for the publish.
      const entered = commands.some(continuesRun) ? undefined : this.#gate.enter(projectId, commands.length);
      endPublish = entered instanceof Promise ? await entered : entered;
      const { drafts, accepted, context } = await publishAll(this.#context, projectId, commands, admitted);
      endPublish?.();
      endPublish = undefined;
      this.#health.noteSaved();
      const [first] = accepted;
      if (first?.kind === 'overDayLimit') throw dailyLimitReached(first.limit, first.remaining, context.nowMs);
      return await this.#withLostDuplicates(
        projectId,
        drafts.map((draft, index) => publishOutcome(draft, accepted[index])),
      );
    } catch (error) {
      endPublish?.(error);
      this.#health.noteFailure(error);
      this.#watch?.noteFailure(error);
      throw error;
    }
  }

  /**
   * Adds the state of an earlier duplicate that will never be delivered: the publisher must learn that nothing was
   * published now.
   */
  async #withLostDuplicates(projectId: ProjectId, outcomes: PublishOutcome[]): Promise<PublishOutcome[]> {
    const duplicates = [...new Set(outcomes.flatMap((each) => (isDuplicate(each) ? [each.messageId] : [])))];
    const states = new Map<MessageId, LogState>();
    for (let at = 0; at < duplicates.length; at += IDS_PER_READ) {
      const messageId = duplicates.slice(at, at + IDS_PER_READ);
      const filter: LogFilter = { messageId, state: ['FAILED', 'CANCELED'] };
      const page = { count: messageId.length, order: 'latestFirst' } as const;
      const { items } = await this.#context.store.logs.listLogs({ projectId, filter, page }).catch((error: unknown) => {
        // The publish is saved, so the client must not get an error.
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

  checkAdmission(projectId: ProjectId): void {
    this.#gate.check(projectId);
  }

  get inFlight(): number {
    return this.#context.dispatcher.inFlight.count;
  }

  busiestProjects(count: number): [ProjectId, number][] {
    return this.#context.dispatcher.inFlight.busiest(count);
  }

  readTotals(): Promise<Totals> {
    const { store, clock } = this.#context;
    return store.backlog.readTotals({ nowMs: clock.nowMs() });
  }

  get workersAlive(): number | undefined {
    return this.#heartbeat?.workersAlive;
  }

  get otherWorkers(): readonly WorkerId[] {
    return this.#heartbeat?.others ?? [];
  }

  async ping(): Promise<readonly UnavailableCell[]> {
    this.#health.check();
    await this.#context.store.ping();
    return [];
  }

  hasActiveClaim(claimToken: ClaimToken): boolean {
    return this.#context.dispatcher.hasClaim(claimToken);
  }

  quiesce(limitMs: Millis): Promise<void> {
    this.#quiescing ??= this.#quiesce(limitMs);
    return this.#quiescing;
  }

  drain(limitMs: Millis): Promise<void> {
    this.#draining ??= this.quiesce(limitMs).then(() => this.#heartbeat?.stop());
    return this.#draining;
  }

  async #quiesce(limitMs: Millis): Promise<void> {
    const { dispatcher, minutes, schedules, waiters, cancellations, operatorEvents } = this.#context;
    dispatcher.intake.close();
    this.#gate.close();
    this.#heartbeat?.noteDraining();
    await Promise.all([
      dispatcher.drain(limitMs),
      ...[this.#retention, schedules, waiters, cancellations, this.#release, operatorEvents, this.#watch].map((each) =>
        each?.stop(),
      ),
    ]);
    await minutes.stop();
  }
}

/** Whether the command continues a run: a step, an invoked run, or the second phase of a trigger. */
function continuesRun({ options: { run }, invocation }: PublishCommand): boolean {
  return invocation !== undefined || run?.kind === 'append' || run?.isBySdk === true;
}

/** The maximum of ids in a log filter. */
const IDS_PER_READ = 1_000;

/** Whether an earlier message replaces the publish. Duplicates within a run are handled by the client library. */
function isDuplicate(outcome: PublishOutcome): outcome is Published {
  return outcome !== 'tooManyQueues' && outcome.deduplicated && outcome.run === undefined;
}

function publishOutcome({ message, run }: Draft, accepted: Accepted | undefined): PublishOutcome {
  if (accepted?.kind === 'tooManyQueues') return 'tooManyQueues';
  const isDuplicate = accepted?.kind === 'duplicate';
  const published: Published = {
    messageId: isDuplicate ? accepted.messageId : message.id,
    url: message.url,
    deduplicated: isDuplicate,
  };
  const started = isDuplicate ? accepted.run : run;
  if (started) published.run = { id: started.id, createdAtMs: started.createdAtMs };
  return published;
}
