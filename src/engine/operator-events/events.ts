/**
 * Publishes operator events (docs/operator-events.md). A fact is saved in the store together with the change that caused
 * the fact. Shortly after this worker is notified of a fact, it counts all saved facts and saves the messages that report
 * them. So a crash loses no fact, and only one of several workers reports a fact.
 */

import { mintMessageId } from '../../protocol/ids.ts';
import type { Store } from '../../store/store.ts';
import type { EngineDeps } from '../deps.ts';
import { DueLoop } from '../loops/due-loop.ts';
import type { Intake } from '../messages/intake.ts';
import { countsOf } from '../minutes/counts.ts';
import type { Change, Message, MessageKey, Millis } from '../model.ts';
import { LATE_MS, type Schedule } from '../schedules/schedules.ts';
import { StoreUnavailable } from '../store-errors.ts';
import type { Numbers } from '../workers/numbers.ts';
import type { OperatorEventKind } from './kinds.ts';
import { NO_PROJECT, type OperatorEventsOptions, type OperatorFact, type Tally } from './model.ts';
import { eventBody, type PublishedTally } from './text.ts';

/** The time from the first fact until facts are counted: all facts in this time are reported together. */
const COUNT_AFTER_MS = 1_000;
/** The maximum of facts that are counted in one transaction. */
const FACTS_MAX = 200;
/** The retries of an event. With the default backoff, they take more than a day. */
const RETRIES = 5;
const TIMEOUT_MS = 30_000;

export class OperatorEvents {
  readonly options: OperatorEventsOptions;
  readonly #context: Pick<EngineDeps, 'store' | 'clock' | 'randomness' | 'log'>;
  readonly #numbers: Numbers;
  readonly #loop: DueLoop;
  readonly #origin: string;
  #intake: Intake | undefined;

  constructor(
    context: Pick<EngineDeps, 'store' | 'clock' | 'randomness' | 'log'>,
    numbers: Numbers,
    options: OperatorEventsOptions,
  ) {
    this.#context = context;
    this.#numbers = numbers;
    this.options = options;
    this.#origin = new URL(options.url).origin;
    this.#loop = new DueLoop(context, 'operator_events_failed', () => this.#doBatch(), 'upkeep');
  }

  /** Publishes the facts that earlier workers have left, and then those of this worker. */
  start(intake: Intake): void {
    this.#intake = intake;
    this.#loop.wake();
  }

  stop(): Promise<void> {
    return this.#loop.stop();
  }

  isPublished(kind: OperatorEventKind): boolean {
    return this.options.thresholds[kind] !== undefined;
  }

  /**
   * The kind of operator event that reports a change, from the counts that minutes and metrics use. Returns undefined if
   * the change is not reported, such as a change of an operator event itself. The other kinds (a late schedule, an
   * origin, a worker, the store) are not about messages, so they have no counts.
   */
  kindOf({ settings }: Message, change: Change): OperatorEventKind | undefined {
    const counts = settings.isOperatorEvent ? [] : countsOf(change);
    if (!counts.includes('deadLetters')) return undefined;
    const kind = counts.includes('runsFailed') ? 'run_failed' : 'message_buried';
    return this.isPublished(kind) ? kind : undefined;
  }

  /**
   * The fact that a schedule was triggered `lagMs` late, or that its trigger failed. Returns undefined for a trigger in
   * time.
   */
  factOf(
    { projectId, id }: Pick<Schedule, 'projectId' | 'id'>,
    { key, lagMs, hasFailed }: { key: MessageKey; lagMs: Millis; hasFailed: boolean },
  ): OperatorFact | undefined {
    if (!this.isPublished('schedule_missed') || (lagMs <= LATE_MS && !hasFailed)) return undefined;
    return { key, kind: 'schedule_missed', projectId, atMs: this.#context.clock.nowMs(), example: id };
  }

  /** Notes that another transaction has saved facts. */
  noteSaved(): void {
    this.#loop.noteNext(this.#context.clock.nowMs() + COUNT_AFTER_MS);
  }

  /**
   * Notes that attempts to `origin` end without a response. The fact is not reported if `origin` is the operator's own
   * endpoint, to which the report would be sent.
   */
  noteHeldBack(origin: string): void {
    if (origin !== this.#origin) void this.note('origin_held', origin);
  }

  /** Saves a fact in a transaction of its own. If the store is unavailable, the failure is only logged. */
  async note(kind: OperatorEventKind, example: string): Promise<void> {
    const { store, clock, log } = this.#context;
    if (!this.isPublished(kind)) return;
    try {
      const key = await this.#numbers.take(1);
      const fact: OperatorFact = { key, kind, projectId: NO_PROJECT, atMs: clock.nowMs(), example };
      await store.operatorEvents.noteFacts({ facts: [fact] });
      this.noteSaved();
    } catch (error) {
      if (!(error instanceof StoreUnavailable)) throw error;
      log.warn('operator_events_failed', { reason: error.message });
    }
  }

  /** The message that reports `tally`, under a unique key. */
  messageOf(tally: PublishedTally & Pick<Tally, 'projectId'>, key: MessageKey): Message {
    const { clock, randomness } = this.#context;
    const { options } = this;
    const project = tally.projectId === NO_PROJECT ? undefined : options.projectName(tally.projectId);
    const nowMs = clock.nowMs();
    return {
      key,
      id: mintMessageId(key, (count) => randomness.bytes(count)),
      projectId: options.projectId,
      url: options.url,
      origin: this.#origin,
      method: 'POST',
      header: { 'Content-Type': ['application/json'] },
      body: eventBody(tally, project, options.cell?.()?.name),
      createdAtMs: nowMs,
      notBeforeMs: nowMs,
      settings: {
        ...{ dialect: 'upstash', maxRetries: RETRIES, timeoutMs: TIMEOUT_MS, labels: [tally.kind] },
        isOperatorEvent: true,
      },
    };
  }

  async #doBatch(): Promise<'more' | Millis> {
    const { store, clock } = this.#context;
    const { thresholds, quietMs } = this.options;
    const nowMs = clock.nowMs();
    const rules = { thresholds, quietMs, factsMax: FACTS_MAX };
    const { hasMore, due, nextAtMs = Infinity } = await store.operatorEvents.gatherFacts({ nowMs, ...rules });
    if (hasMore) return 'more';
    for (const tally of due) await this.#publish(tally);
    return due.length > 0 ? 'more' : nextAtMs;
  }

  async #publish(tally: Tally): Promise<void> {
    const { store, clock } = this.#context;
    const { options } = this;
    const message = this.messageOf(tally, await this.#numbers.take(1));
    const nowMs = clock.nowMs();
    const quietUntilMs = nowMs + options.quietMs;
    const cell = options.cell?.();
    if (cell) {
      // The event is saved in two transactions: after a crash between them, it is published again. If the count is still
      // the same, so is the message, which is then saved only once.
      await cell.saveElsewhere(message, hashOf(tally, cell.name));
      await store.operatorEvents.noteReported({ tally, quietUntilMs });
      return;
    }
    const save = async ([newMessage]: readonly TallyMessage[]) =>
      newMessage === undefined
        ? 'stale'
        : store.operatorEvents.reportTally({
            projectId: options.projectId,
            tally,
            message: newMessage,
            quietUntilMs,
            nowMs,
          });
    await this.#intake?.save([{ message }], save, (saved) => (saved === 'stale' ? [] : [saved]));
  }
}

/** The deduplication hash of a tally. The hashes of publishes have another form. */
function hashOf({ kind, projectId, count, firstAtMs, quietUntilMs }: Tally, cell: string): string {
  return ['operator event', cell, kind, projectId, count, firstAtMs, quietUntilMs].join(' ');
}

type TallyMessage = Parameters<Store['operatorEvents']['reportTally']>[0]['message'];
