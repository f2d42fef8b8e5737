/**
 * Tells the operator what happens (docs/operator-events.md). Facts lie in the store from when they come about; a while after
 * this worker heard of one, it counts them all and saves the messages that tell of them. So a crash loses none, and of
 * several workers one tells.
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
import { eventBody, type ToldTally } from './text.ts';

/** Facts within this time are reported in one event. */
const GATHER_AFTER_MS = 1_000;
/** Facts counted in one transaction. */
const FACTS_MAX = 200;
/** With the default pauses, for more than a day. */
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

  /** Tells what earlier workers have left, and from then on what this one hears of. */
  start(intake: Intake): void {
    this.#intake = intake;
    this.#loop.wake();
  }

  stop(): Promise<void> {
    return this.#loop.stop();
  }

  isTold(kind: OperatorEventKind): boolean {
    return this.options.thresholds[kind] !== undefined;
  }

  /**
   * The kind of event that a change is reported as, from the same counts that minutes and metrics read; `undefined`: it is not
   * reported. The fate of an event is no event. The other kinds (a late schedule, an origin, a worker, the store) are not events of
   * messages, so they have no counts to be read from.
   */
  kindOf({ settings }: Message, change: Change): OperatorEventKind | undefined {
    const counts = settings.isOperatorEvent ? [] : countsOf(change);
    if (!counts.includes('deadLetters')) return undefined;
    const kind = counts.includes('runsFailed') ? 'run_failed' : 'message_buried';
    return this.isTold(kind) ? kind : undefined;
  }

  /** That a schedule was triggered so long after its time, or could not be; `undefined`: that is no event. */
  factOf(
    { projectId, id }: Pick<Schedule, 'projectId' | 'id'>,
    { key, lagMs, hasFailed }: { key: MessageKey; lagMs: Millis; hasFailed: boolean },
  ): OperatorFact | undefined {
    if (!this.isTold('schedule_missed') || (lagMs <= LATE_MS && !hasFailed)) return undefined;
    return { key, kind: 'schedule_missed', projectId, atMs: this.#context.clock.nowMs(), example: id };
  }

  /** Facts were saved with something else. */
  noteSaved(): void {
    this.#loop.noteNext(this.#context.clock.nowMs() + GATHER_AFTER_MS);
  }

  /** Attempts to `origin` end without an answer. If it is the operator's own, there is nobody to tell. */
  noteHeldBack(origin: string): void {
    if (origin !== this.#origin) void this.note('origin_held', origin);
  }

  /** Saves a fact that nothing else saves. While the store does not take it, it is only logged. */
  async note(kind: OperatorEventKind, example: string): Promise<void> {
    const { store, clock, log } = this.#context;
    if (!this.isTold(kind)) return;
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

  /** The message that tells of `tally`, under a key that no other message has. */
  messageOf(tally: ToldTally & Pick<Tally, 'projectId'>, key: MessageKey): Message {
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
    for (const tally of due) await this.#tell(tally);
    return due.length > 0 ? 'more' : nextAtMs;
  }

  async #tell(tally: Tally): Promise<void> {
    const { store, clock } = this.#context;
    const { options } = this;
    const message = this.messageOf(tally, await this.#numbers.take(1));
    const nowMs = clock.nowMs();
    const quietUntilMs = nowMs + options.quietMs;
    const cell = options.cell?.();
    if (cell) {
      // Not in one transaction: after a crash in between the event is published again, with the same message unless more was counted.
      await cell.saveElsewhere(message, hashOf(tally, cell.name));
      await store.operatorEvents.noteTold({ tally, quietUntilMs });
      return;
    }
    const save = async ([placed]: readonly NewMessageOf[]) =>
      placed === undefined
        ? 'stale'
        : store.operatorEvents.tellTally({ projectId: options.projectId, tally, message: placed, quietUntilMs, nowMs });
    await this.#intake?.save([{ message }], save, (saved) => (saved === 'stale' ? [] : [saved]));
  }
}

/** The same for the same tally. Publishes have hashes of another form. */
function hashOf({ kind, projectId, count, firstAtMs, quietUntilMs }: Tally, cell: string): string {
  return ['operator event', cell, kind, projectId, count, firstAtMs, quietUntilMs].join(' ');
}

type NewMessageOf = Parameters<Store['operatorEvents']['tellTally']>[0]['message'];
