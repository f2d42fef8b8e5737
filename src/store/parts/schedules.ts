/** How are schedules kept, listed and moved on? */
import type { ScheduleStore } from '../../engine/schedules/store.ts';
import type { Connection } from '../connection.ts';
import {
  decodeSchedule,
  decodeScheduleViews,
  encodeSchedule,
  encodeScheduleChange,
} from '../operations/schedules/schedule-rows.ts';

export function schedulesOver(connection: Connection): ScheduleStore {
  return {
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

    async findSchedule({ projectId, id }) {
      const [view] = decodeScheduleViews(await connection.read('findSchedule', { projectId, id }));
      return view;
    },

    async listSchedules({ projectId }) {
      return decodeScheduleViews(await connection.read('listSchedules', { projectId }));
    },

    async dueSchedules(request) {
      const { due, nextAtMs } = await connection.read('dueSchedules', request);
      return {
        due: due.map((row) => ({ schedule: decodeSchedule(row), isBusy: row.busy === 1 })),
        nextAtMs: nextAtMs ?? undefined,
      };
    },

    async strandedSchedules(passedAfterMs, piece) {
      const rows = await connection.read('strandedSchedules', { passedAfterMs, ...piece });
      return rows.map(decodeSchedule);
    },
  };
}
