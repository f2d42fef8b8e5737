/** How are schedules kept, listed and moved on? */
import type { ScheduleStore } from '../../engine/schedules/store.ts';
import type { Connection } from '../connection.ts';
import { decodeSchedule, encodeSchedule, encodeScheduleChange } from '../operations/schedules/schedule-rows.ts';
import * as schedules from '../operations/schedules/schedules.ts';
import { derive } from './derive.ts';

export function schedulesOver(connection: Connection): ScheduleStore {
  return {
    ...derive(connection, schedules),

    saveSchedule(schedule, fromVersion, schedulesMax) {
      return connection.write('saveSchedule', {
        schedule: encodeSchedule(schedule),
        fromVersion: fromVersion ?? null,
        schedulesMax,
      });
    },

    changeSchedules(changes, nowMs) {
      const stored = changes.map(encodeScheduleChange);
      return connection.write('changeSchedules', { changes: stored, nowMs });
    },

    async deleteSchedule({ projectId, id }) {
      await connection.write('deleteSchedule', { projectId, id });
    },

    async strandedSchedules(passedAfterMs, piece) {
      const rows = await connection.read('strandedSchedules', { passedAfterMs, ...piece });
      return rows.map(decodeSchedule);
    },
  };
}
