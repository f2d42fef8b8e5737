/**
 * Counts the events of each project's messages and runs by the minute. The counts are kept in memory and added to the
 * store from time to time: a crash loses the last seconds. While no event happens, no counts are saved (P12).
 */
import type { Store } from '../../store/store.ts';
import { Alarm, type AlarmClock } from '../loops/alarm.ts';
import { type Claimed, firstDueAtMs, type Millis, type ProjectId } from '../model.ts';
import type { EventLog } from '../ports.ts';
import { CommitUnknown, StoreUnavailable } from '../store-errors.ts';
import { addToHistogram, type Count, emptyMinute, type Minute, minuteOf } from './counts.ts';

/** The time from the first count until the counts are saved: a crash loses at most the counts of this time. */
const SAVE_AFTER_MS = 10_000;

/** The maximum of minutes of a project in memory while the store fails. Older minutes are forgotten (P10). */
const UNSAVED_MAX = 60;

export class MinuteCounter {
  readonly #store: Pick<Store['minutes'], 'addMinutes'>;
  readonly #log: EventLog;
  readonly #unsaved = new Map<ProjectId, Minute[]>();
  /** Set while there are counts to save, except while a save is running. */
  readonly #alarm: Alarm;
  #round: Promise<void> | undefined;
  #stopped = false;

  constructor(store: Pick<Store['minutes'], 'addMinutes'>, clock: AlarmClock, log: EventLog) {
    this.#store = store;
    this.#log = log;
    this.#alarm = new Alarm(clock, () => this.#startRound(), 'upkeep');
  }

  /** Adds `counts`, without the kinds that are not kept by the minute. */
  count(projectId: ProjectId, timeMs: Millis, counts: readonly Count[]): void {
    const minute = this.#minuteAt(projectId, timeMs);
    for (const name of counts) {
      if (name in minute) minute[name as keyof Minute & Count] += 1;
    }
  }

  /** Counts an attempt that ended at `endedAtMs` and was saved. */
  attempted({ message, retried, durationMs = 0 }: Claimed, endedAtMs: Millis): void {
    const minute = this.#minuteAt(message.projectId, endedAtMs);
    addToHistogram(minute.latency, durationMs);
    if (retried === 0) addToHistogram(minute.lag, endedAtMs - durationMs - firstDueAtMs(message));
  }

  /** Saves all counts. Call this method after the last event. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#alarm.cancel();
    await this.#round;
    await this.#saveAll();
  }

  #minuteAt(projectId: ProjectId, timeMs: Millis): Minute {
    let minutes = this.#unsaved.get(projectId);
    if (!minutes) {
      minutes = [];
      this.#unsaved.set(projectId, minutes);
      this.#wake();
    }
    const atMs = minuteOf(timeMs);
    let minute = minutes.findLast((each) => each.atMs === atMs);
    if (!minute) {
      minute = emptyMinute(timeMs);
      minutes.push(minute);
    }
    return minute;
  }

  #wake(): void {
    if (this.#stopped || this.#round !== undefined || this.#alarm.isSet) return;
    this.#alarm.setIn(SAVE_AFTER_MS);
  }

  #startRound(): void {
    this.#round = this.#saveAll().then(() => {
      this.#round = undefined;
      if (this.#unsaved.size > 0) this.#wake();
    });
  }

  /** Saves the counts of each project in a transaction of its own, one project after the other. */
  async #saveAll(): Promise<void> {
    for (const projectId of [...this.#unsaved.keys()]) {
      if (!(await this.#save(projectId))) return;
    }
  }

  /**
   * Returns whether to continue with the next project. Counts are less important than deliveries, so no failure stops the
   * worker.
   */
  async #save(projectId: ProjectId): Promise<boolean> {
    const minutes = this.#unsaved.get(projectId) ?? [];
    this.#unsaved.delete(projectId);
    try {
      await this.#store.addMinutes({ projectId, minutes });
      return true;
    } catch (error) {
      this.#log.warn('minutes_not_saved', { reason: error instanceof Error ? error.message : String(error) });
      // Counts that may have been saved are not saved again: better too few than too many.
      const isUnsaved = error instanceof StoreUnavailable && !(error instanceof CommitUnknown);
      if (isUnsaved) this.#putBack(projectId, minutes);
      return false;
    }
  }

  #putBack(projectId: ProjectId, minutes: readonly Minute[]): void {
    const since = this.#unsaved.get(projectId) ?? [];
    this.#unsaved.set(projectId, [...minutes, ...since].slice(-UNSAVED_MAX));
  }
}
