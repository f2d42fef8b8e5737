/** Types of the store's operations on schedules. */
import type { Schedule, TriggeredMessage } from './schedules.ts';

/** A schedule that is due. */
export interface DueSchedule {
  schedule: Schedule;
  /** Whether a message of the latest trigger is unfinished. Only read for schedules whose triggers must not overlap. */
  isBusy: boolean;
}

export interface ScheduleView {
  schedule: Schedule;
  /** The messages of the latest trigger that the store still has, in the order in which the trigger made them. */
  lastMessages: TriggeredMessage[];
}
