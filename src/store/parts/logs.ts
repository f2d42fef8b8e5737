/** How is the log of a project's messages read? */
import type { Message, MessageKey } from '../../engine/model.ts';
import type { LogEntry, LogStore } from '../../engine/stores.ts';
import type { Connection } from '../connection.ts';
import * as liveLogs from '../operations/logs/live-logs.ts';
import { codeOfLogState, decodeDetail, decodeMessage, logStateOf } from '../operations/messages/rows.ts';
import { messageOf } from '../operations/page.ts';
import { derive } from './derive.ts';
import { keysOf, readPage, TOGETHER } from './pages.ts';

export function logsOver(connection: Connection): LogStore {
  return {
    ...derive(connection, liveLogs),

    async listLogs({ projectId, filter, page }) {
      const { messageId, state, fromMs: _from, toMs: _to, ...attributes } = filter;
      const messages = messageId && { ids: messageId, keys: keysOf(messageId) };
      return readPage(filter, page, async (slice) => {
        const { rows, contents, details, ...rest } = await connection.read('listLogs', {
          projectId,
          filter: attributes,
          slice,
          ...(messages ? { messages } : {}),
          ...(state ? { states: state.map(codeOfLogState) } : {}),
        });
        const messageByKey = new Map<MessageKey, Message>();
        for (const content of contents) {
          messageByKey.set(content.key, decodeMessage(content));
          if (messageByKey.size % TOGETHER === 0) await connection.endOfTurn?.();
        }
        const detailBySeq = new Map(details.map((detail) => [detail.seq, decodeDetail(detail)]));
        const items = rows.map((row): LogEntry => {
          const detail = detailBySeq.get(row.n);
          const entry = {
            atMs: row.timeMs,
            state: logStateOf(row.state),
            message: messageOf(messageByKey, row.message_key),
            ...(row.response_status !== null && { responseStatus: row.response_status }),
          };
          return detail ? { ...entry, detail } : entry;
        });
        return { ...rest, items };
      });
    },
  };
}
