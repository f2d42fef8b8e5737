/** How are failed runs listed, deleted and retried, and how is their failure reported? */
import type { DeadRunStore } from '../../engine/runs/dead-run-store.ts';
import type { Connection } from '../connection.ts';
import { decodeMessage, encodeNewMessage } from '../operations/messages/rows.ts';
import { placeOf, placesOf } from '../operations/page.ts';
import { deleteDeadRuns } from '../operations/runs/dead-runs.ts';
import { FAILURE_STATE } from '../operations/runs/run-rows.ts';
import { decodeDeadRuns, decodeOutline, encodeRunRetry } from './dead-run-codec.ts';
import { derive } from './derive.ts';
import { readPage } from './pages.ts';

export function deadRunsOver(connection: Connection): DeadRunStore {
  return {
    ...derive(connection, { deleteDeadRuns }),

    activeRunKeys(projectId, filter, { afterKey, limit }) {
      return connection.read('activeRunKeys', { projectId, filter, afterKey, limit });
    },

    async listDeadRuns({ projectId, filter, page }) {
      const { failureCallback, fromMs: _from, toMs: _to, ...attributes } = filter;
      return readPage(filter, page, async (slice) => {
        const read = await connection.read('listDeadRuns', {
          projectId,
          filter: attributes,
          slice,
          ...(failureCallback && { failureStates: failureCallback.map((state) => FAILURE_STATE[state]) }),
        });
        const { rows: _rows, contents: _contents, answers: _answers, ...rest } = read;
        return { ...rest, items: decodeDeadRuns(read) };
      });
    },

    async findDeadRuns({ projectId, dlqIds }) {
      const places = placesOf(dlqIds);
      if (places.length === 0) return [];
      return decodeDeadRuns(await connection.read('deadRunsAt', { projectId, places }));
    },

    async outlineJournal(projectId, runKey) {
      return (await connection.read('outlineJournal', { projectId, runKey })).map(decodeOutline);
    },

    async retryRun(retry, nowMs) {
      const place = placeOf(retry.dlqId);
      if (!place) return { kind: 'missing' };
      const args = { ...encodeRunRetry(retry), place, nowMs };
      return connection.write('retryRun', args);
    },

    async findFailureCallback(projectId, dlqId) {
      const place = placeOf(dlqId);
      const row = place && (await connection.read('findFailureCallback', { projectId, place }));
      return row ? decodeMessage(row) : undefined;
    },

    async repeatFailureCallback(projectId, dlqId, message, nowMs) {
      const place = placeOf(dlqId);
      if (!place) return 'missing';
      return connection.write('repeatFailureCallback', {
        projectId,
        place,
        message: encodeNewMessage(message),
        nowMs,
      });
    },

    async cancelFailureCallback(projectId, dlqId, nowMs) {
      const place = placeOf(dlqId);
      if (!place) return 'missing';
      return connection.write('cancelFailureCallback', { projectId, place, nowMs });
    },
  };
}
