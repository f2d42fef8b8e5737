/** How are runs found, read and ended? */
import type { RunStore } from '../../engine/runs/stores.ts';
import type { Connection } from '../connection.ts';
import { decodeMessage, encodeNewMessage } from '../operations/messages/rows.ts';
import { encodeEnding } from '../operations/runs/ending-rows.ts';
import { decodeJournalEntry, decodeRun } from '../operations/runs/run-rows.ts';

export function runsOver(connection: Connection): RunStore {
  return {
    async findActiveRun(projectId, id) {
      const row = await connection.read('findActiveRun', { projectId, id });
      return row === null ? undefined : decodeRun(row);
    },

    async findRun(projectId, key) {
      const row = await connection.read('findRun', { projectId, key });
      return row === null ? undefined : decodeRun(row);
    },

    async journalBytes({ projectId, id }) {
      return (await connection.read('journalBytes', { projectId, id })) ?? undefined;
    },

    async readJournal(projectId, runKey, { afterPosition = -1, toPosition = Number.MAX_SAFE_INTEGER } = {}) {
      const rows = await connection.read('readJournal', { projectId, runKey, afterPosition, toPosition });
      return rows.map(decodeJournalEntry);
    },

    async findRecords(projectId, keys) {
      if (keys.length === 0) return [];
      return (await connection.read('findRecords', { projectId, keys })).map(decodeMessage);
    },

    findParked(args) {
      return connection.read('findParked', args);
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
