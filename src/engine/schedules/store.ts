/** What the engine asks of a store about schedules (see `stores.ts`). */
import type { Saved } from '../messages/accepted.ts';
import type { InProject, Millis } from '../model.ts';
import type { Schedule, ScheduleChange, TriggeredMessage } from './schedules.ts';

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
   * Makes each change and answers how its messages were saved. `'stale'`, with nothing of that change done, when the
   * schedule is gone or has another version by now. A missing queue is made.
   */
  changeSchedules(changes: ScheduleChange[], nowMs: Millis): Promise<(Saved[] | 'stale')[]>;
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
