/** How are runs found, read and ended? */
import type { RunStore } from '../../engine/runs/stores.ts';
import type { Connection } from '../connection.ts';
import { findParked } from '../operations/messages/parked.ts';
import { decodeMessage, encodeNewMessage } from '../operations/messages/rows.ts';
import { encodeEnding } from '../operations/runs/ending-rows.ts';
import { journalBytes } from '../operations/runs/find.ts';
import { decodeJournalEntry, decodeRun } from '../operations/runs/run-rows.ts';
import { derive } from './derive.ts';

export function runsOver(connection: Connection): RunStore {
  return {
    ...derive(connection, { journalBytes, findParked }),

    async findActiveRun(projectId, id) {
      const row = await connection.read('findActiveRun', { projectId, id });
      return row === null ? undefined : decodeRun(row);
    },

    async findRun(projectId, key) {
      const row = await connection.read('findRun', { projectId, key });
      return row === null ? undefined : decodeRun(row);
    },

    async readJournal(projectId, runKey, { afterPosition = -1, toPosition = Number.MAX_SAFE_INTEGER } = {}) {
      const rows = await connection.read('readJournal', { projectId, runKey, afterPosition, toPosition });
      return rows.map(decodeJournalEntry);
    },

    async findRecords(projectId, keys) {
      if (keys.length === 0) return [];
      return (await connection.read('findRecords', { projectId, keys })).map(decodeMessage);
    },

    endRuns(endings, nowMs) {
      return connection.write('endRuns', {
        endings: endings.map(({ ending, follows }) => ({
          ending: encodeEnding(ending),
          follows: follows.map(encodeNewMessage),
        })),
        nowMs,
      });
    },

    cancelLeft(nowMs) {
      return connection.write('cancelLeft', { nowMs });
    },
  };
}
