/** `waypost schedules`: lists, creates, pauses, resumes and deletes schedules. */
import { inZone, minuteOf } from '../columns.ts';
import { action, listed, read } from '../http/simple.ts';
import { commandOf } from '../http/verb.ts';
import { createSchedule } from './publish.ts';

interface Schedule {
  scheduleId: string;
  cron: string;
  destination: string;
  isPaused: boolean;
  nextScheduleTime: number;
}

export const schedules = commandOf('schedules', {
  list: listed<Schedule>('schedules', 'listSchedules', [
    ['SCHEDULE', ({ scheduleId }) => scheduleId],
    ['CRON', ({ cron }) => cron],
    [inZone('NEXT'), ({ isPaused, nextScheduleTime }) => (isPaused ? 'paused' : minuteOf(nextScheduleTime))],
    ['DESTINATION', ({ destination }) => destination],
  ]),
  show: read('schedules', 'getSchedule', '<schedule id>'),
  create: createSchedule,
  pause: action('schedules', 'pauseSchedule', '<schedule id>', 'Paused', 'Stops publishing until it is resumed.'),
  resume: action('schedules', 'resumeSchedule', '<schedule id>', 'Resumed', 'Continues to publish at its next time.'),
  delete: action('schedules', 'deleteSchedule', '<schedule id>', 'Deleted', 'Deletes the schedule permanently.', true),
});
