/** Puts the engine together: recovery first, then its loops, then it takes commands. */
import { ApiError } from '../protocol/errors.ts';
import type { HeaderMap } from '../protocol/settings.ts';
import { type AcceptContext, type Draft, draftOf, firstEvents } from './accept.ts';
import type { DeadRetryOverride, Engine, PublishCommand, Published } from './commands.ts';
import { Dispatcher } from './dispatcher.ts';
import { type Explanation, explain } from './explain.ts';
import { RetentionLoop } from './loops/retention.ts';
import { ScheduleLoop } from './loops/schedules.ts';
import type { Message, MessageId, Millis, NewMessage, ProjectId, Standing, WorkerId } from './model.ts';
import { Numbers } from './numbers.ts';
import type { Clock, Delivery, EventLog, Randomness } from './ports.ts';
import { succeed } from './revive.ts';
import { ScheduleCommands } from './schedule-commands.ts';
import type { EngineSettings } from './settings.ts';
import type { Accepted, AttributeFilter, Store } from './stores.ts';
import type { Endpoint, EndpointSelector, UrlGroupLimits } from './url-groups.ts';

export interface EngineDeps {
  store: Store;
  clock: Clock;
  randomness: Randomness;
  delivery: Delivery;
  log: EventLog;
  settings: EngineSettings;
  worker: WorkerId;
}

/** Dead messages revived in one transaction: their bodies are in memory together. */
const RETRY_PIECE = 16;

/** Messages cancelled in one transaction; between two of them others have their turn. */
const CANCEL_PIECE = 500;

/** Gives back what a crashed predecessor had in flight (P7) and starts delivering. Throws `StoreUnavailable`. */
export async function createEngine(deps: EngineDeps): Promise<Engine> {
  const released = await deps.store.releaseAll(deps.clock.nowMs());
  if (released > 0) deps.log.info('recovered', { count: released });
  const numbers = new Numbers(deps.store);
  const dispatcher = new Dispatcher({ ...deps, numbers }, await deps.store.parkedOrigins());
  const retention = new RetentionLoop(deps.store, deps.clock, deps.log, deps.settings);
  dispatcher.wake();
  retention.start();
  const engine = new RunningEngine(deps, numbers, dispatcher, retention);
  engine.startSchedules();
  return engine;
}

class RunningEngine implements Engine {
  readonly #deps: EngineDeps;
  readonly #numbers: Numbers;
  readonly #dispatcher: Dispatcher;
  readonly #retention: RetentionLoop;
  readonly #schedules: ScheduleLoop;
  #acceptsWaiting = 0;
  #draining: Promise<void> | undefined;

  readonly listDead: Engine['listDead'];
  readonly findDead: Engine['findDead'];
  readonly deleteDead: Engine['deleteDead'];
  readonly listLogs: Engine['listLogs'];
  readonly deleteUrlGroup: Engine['deleteUrlGroup'];
  readonly findUrlGroup: Engine['findUrlGroup'];
  readonly listUrlGroups: Engine['listUrlGroups'];
  readonly createSchedule: Engine['createSchedule'];
  readonly setSchedulePaused: Engine['setSchedulePaused'];
  readonly deleteSchedule: Engine['deleteSchedule'];
  readonly findSchedule: Engine['findSchedule'];
  readonly listSchedules: Engine['listSchedules'];
  readonly ping: Engine['ping'];

  constructor(deps: EngineDeps, numbers: Numbers, dispatcher: Dispatcher, retention: RetentionLoop) {
    this.#deps = deps;
    this.#numbers = numbers;
    this.#dispatcher = dispatcher;
    this.#retention = retention;
    const { store } = deps;
    this.listDead = store.listDead.bind(store);
    this.findDead = store.findDead.bind(store);
    this.deleteDead = store.deleteDead.bind(store);
    this.listLogs = store.listLogs.bind(store);
    this.deleteUrlGroup = store.deleteUrlGroup.bind(store);
    this.findUrlGroup = store.findUrlGroup.bind(store);
    this.listUrlGroups = store.listUrlGroups.bind(store);
    this.deleteSchedule = store.deleteSchedule.bind(store);
    this.findSchedule = store.findSchedule.bind(store);
    this.listSchedules = store.listSchedules.bind(store);
    this.ping = store.ping.bind(store);
    this.#schedules = new ScheduleLoop({
      ...deps,
      numbers,
      acceptContext: (projectId) => this.#acceptContext(projectId),
      place: (drafts) => this.#place(drafts),
      setGoing: (message, isSaved) => this.#setGoing(message, isSaved),
    });
    const commands = new ScheduleCommands({ ...deps, numbers, noteNext: (atMs) => this.#schedules.noteNext(atMs) });
    this.createSchedule = commands.create.bind(commands);
    this.setSchedulePaused = commands.setPaused.bind(commands);
  }

  /** Triggers what has become due since the last process ended, and goes on from there. */
  startSchedules(): void {
    this.#schedules.wake();
  }

  async publish(projectId: ProjectId, commands: PublishCommand[]): Promise<Published[]> {
    if (commands.length === 0) return [];
    const firstKey = await this.#takeNumbers(commands.length);
    const context = this.#acceptContext(projectId);
    const news = await this.#place(commands.map((command, index) => draftOf(command, firstKey + index, context)));
    const accepted = await this.#admit(news, () => this.#deps.store.accept(news, context.nowMs));
    return news.map(({ message }, index) => publishedAs(message, accepted[index]));
  }

  findMessage(projectId: ProjectId, id: MessageId): Promise<Message | undefined> {
    const { store, clock, settings } = this.#deps;
    return store.find(projectId, id, clock.nowMs() - settings.deliveredGraceMs);
  }

  async explainMessage(projectId: ProjectId, id: MessageId): Promise<Explanation | undefined> {
    const { store, clock } = this.#deps;
    const live = await store.standingOf(projectId, id);
    return live && explain(live, clock.nowMs());
  }

  cancelMessages(projectId: ProjectId, ids: MessageId[]): Promise<number> {
    return this.#deps.store.cancelById(projectId, ids, this.#deps.clock.nowMs());
  }

  async cancelMatching(projectId: ProjectId, filter: AttributeFilter, count = Infinity): Promise<number> {
    const { store, clock } = this.#deps;
    let cancelled = 0;
    while (cancelled < count) {
      const limit = Math.min(CANCEL_PIECE, count - cancelled);
      const piece = await store.cancelMatching(projectId, filter, limit, clock.nowMs());
      cancelled += piece;
      if (piece < limit) break;
    }
    return cancelled;
  }

  async retryDead(
    projectId: ProjectId,
    dlqIds: string[],
    override: DeadRetryOverride = {},
  ): Promise<MessageId[] | undefined> {
    const wanted = [...new Set(dlqIds)];
    if ((await this.#deps.store.countDead(projectId, wanted)) < wanted.length) return undefined;
    const messageIds: MessageId[] = [];
    for (let at = 0; at < wanted.length; at += RETRY_PIECE) {
      const piece = await this.#revive(projectId, wanted.slice(at, at + RETRY_PIECE), override);
      // Gone since it was counted: somebody else retried or deleted it.
      if (piece === undefined && messageIds.length === 0) return undefined;
      messageIds.push(...(piece ?? []));
    }
    return messageIds;
  }

  /** Publishes all entries anew, or, when one of them is gone, none. */
  async #revive(projectId: ProjectId, dlqIds: string[], override: DeadRetryOverride): Promise<MessageId[] | undefined> {
    const { store } = this.#deps;
    const dead = await store.findDeadMany(projectId, dlqIds);
    if (dead.length < dlqIds.length) return undefined;
    const firstKey = await this.#takeNumbers(dead.length);
    const context = this.#acceptContext(projectId);
    const successors = await this.#place(
      dead.map((entry, index) => ({ message: succeed(entry, firstKey + index, override, context) })),
    );
    const revivals = successors.map((successor, index) => ({ dlqId: dlqIds[index] ?? '', successor }));
    const saved = await this.#admit(successors, async () => {
      const outcome = await store.reviveDead(projectId, revivals);
      return outcome === 'saved' ? successors.map((): Accepted => ({ kind: 'accepted' })) : [];
    });
    return saved.length === 0 ? undefined : successors.map(({ message }) => message.id);
  }

  addEndpoints(
    projectId: ProjectId,
    name: string,
    endpoints: Endpoint[],
    limits: UrlGroupLimits,
  ): Promise<'saved' | 'tooManyGroups' | 'tooManyEndpoints'> {
    const { store, clock } = this.#deps;
    return store.addEndpoints(projectId, name, endpoints, limits, clock.nowMs());
  }

  removeEndpoints(projectId: ProjectId, name: string, selectors: EndpointSelector[]): Promise<'saved' | 'missing'> {
    const { store, clock } = this.#deps;
    return store.removeEndpoints(projectId, name, selectors, clock.nowMs());
  }

  setGroupHeaders(projectId: ProjectId, name: string, headers: HeaderMap): Promise<'saved' | 'missing'> {
    const { store, clock } = this.#deps;
    return store.setGroupHeaders(projectId, name, headers, clock.nowMs());
  }

  drain(limitMs: Millis): Promise<void> {
    this.#draining ??= Promise.all([
      this.#dispatcher.drain(limitMs),
      this.#retention.stop(),
      this.#schedules.stop(),
    ]).then(() => undefined);
    return this.#draining;
  }

  #acceptContext(projectId: ProjectId): AcceptContext {
    const { clock, randomness, settings } = this.#deps;
    const { deduplicationWindowMs } = settings;
    return { projectId, nowMs: clock.nowMs(), randomness, deduplicationWindowMs };
  }

  async #takeNumbers(count: number): Promise<number> {
    const first = this.#numbers.take(count);
    return typeof first === 'number' ? first : await first;
  }

  /** Decides where each message will stand, reserving a place for those that can go out at once. */
  async #place(drafts: Draft[]): Promise<NewMessage[]> {
    const firstToken = await this.#takeNumbers(drafts.length);
    return drafts.map((draft, index) => {
      const standing = this.#standingOf(draft.message, firstToken + index);
      return { ...draft, standing, events: firstEvents(draft.message, standing) };
    });
  }

  #standingOf(message: Message, claimToken: number): Standing {
    const dueAtMs = message.notBeforeMs;
    if (dueAtMs > message.createdAtMs) return { kind: 'waiting', dueAtMs };
    switch (this.#dispatcher.tryReserve(message.origin, message.body.length)) {
      case 'reserved':
        return { kind: 'claimed', claimToken };
      case 'parked':
        return { kind: 'parked', dueAtMs };
      case 'none':
        return { kind: 'waiting', dueAtMs };
    }
  }

  /** Saves `news` and sets going what came through; gives back the places of what did not. */
  async #admit(news: NewMessage[], save: () => Promise<Accepted[]>): Promise<Accepted[]> {
    let accepted: Accepted[] = [];
    this.#acceptsWaiting += 1;
    try {
      if (this.#draining !== undefined) throw new ApiError('unavailable', 'the server is shutting down');
      if (this.#acceptsWaiting > this.#deps.settings.acceptsWaitingMax) {
        throw new ApiError('unavailable', 'too many messages are waiting to be stored, try again shortly');
      }
      accepted = await save();
    } finally {
      this.#acceptsWaiting -= 1;
      news.forEach((entry, index) => {
        this.#setGoing(entry, accepted[index]?.kind === 'accepted');
      });
    }
    return accepted;
  }

  #setGoing({ message, standing }: NewMessage, isAccepted: boolean): void {
    if (standing.kind === 'claimed') {
      if (!isAccepted) return this.#dispatcher.giveBack(message.origin, message.body.length);
      const { claimToken } = standing;
      return this.#dispatcher.start({ message, retried: 0, claimToken, claimedAtMs: message.createdAtMs });
    }
    if (!isAccepted) return;
    if (standing.kind === 'parked') this.#dispatcher.noteParked(message.origin);
    else this.#dispatcher.noteDue(standing.dueAtMs);
  }
}

function publishedAs(message: Message, accepted: Accepted | undefined): Published {
  const isDuplicate = accepted?.kind === 'duplicate';
  return {
    messageId: isDuplicate ? accepted.messageId : message.id,
    url: message.url,
    deduplicated: isDuplicate,
  };
}
