/** How are the logs of runs read: event by event, and run by run? */
import type { RunLogStore } from '../../engine/runs/log-store.ts';
import type { Connection } from '../connection.ts';
import { codeOfLogState } from '../operations/messages/rows.ts';
import { RUN_STATE } from '../operations/runs/run-rows.ts';
import { decodeHistories, decodeRunEvents } from './decode-run-logs.ts';
import { keysOf, readPage } from './pages.ts';

export function runLogsOver(connection: Connection): RunLogStore {
  return {
    async listRunEvents({ projectId, filter, page }) {
      const { messageId, state, fromMs: _from, toMs: _to, ...attributes } = filter;
      const messages = messageId && { ids: messageId, keys: keysOf(messageId) };
      return readPage(filter, page, async (slice) => {
        const rows = await connection.read('listRunEvents', {
          projectId,
          filter: attributes,
          slice,
          ...(messages && { messages }),
          ...(state && { states: state.map(codeOfLogState) }),
        });
        const { next, windowEnd, bytes } = rows;
        return { items: decodeRunEvents(rows), bytes, ...(next && { next }), ...(windowEnd && { windowEnd }) };
      });
    },

    async listRunHistories({ projectId, filter, page, bodyBytesMax }) {
      const { messageId, state, fromMs: _from, toMs: _to, ...attributes } = filter;
      const messages = messageId && { ids: messageId, keys: keysOf(messageId) };
      return readPage(filter, page, async (slice) => {
        const rows = await connection.read('listHistories', {
          projectId,
          filter: attributes,
          slice,
          ...(messages && { messages }),
          ...(state && { states: state.map((name) => RUN_STATE[name]) }),
          ...(bodyBytesMax !== undefined && { bodyBytesMax }),
        });
        const { next, windowEnd, bytes } = rows;
        return { items: decodeHistories(rows), bytes, ...(next && { next }), ...(windowEnd && { windowEnd }) };
      });
    },
  };
}
