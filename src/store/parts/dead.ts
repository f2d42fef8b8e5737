/** How are messages in the DLQ listed, deleted and retried? */
import type { DeadMessage, DeadMessageStore } from '../../engine/stores.ts';
import { dlqIdOf } from '../../protocol/cursor.ts';
import type { Connection } from '../connection.ts';
import type { Writes } from '../operations/all.ts';
import type { DeadRow } from '../operations/messages/dead.ts';
import { type ContentRow, decodeDeadLetter, decodeMessage, encodeNewMessage } from '../operations/messages/rows.ts';
import { keysOf, messageOf, placeOf, placesOf, readPage } from './pages.ts';

export function deadOver(connection: Connection): DeadMessageStore {
  return {
    async listDead({ projectId, filter, page }) {
      const { messageId, responseStatus, fromMs: _from, toMs: _to, ...attributes } = filter;
      const messages = messageId && { ids: messageId, keys: keysOf(messageId) };
      return readPage(filter, page, async (slice) => {
        const { rows, contents, ...rest } = await connection.read('listDead', {
          projectId,
          filter: attributes,
          slice,
          ...(messages ? { messages } : {}),
          ...(responseStatus ? { responseStatus } : {}),
        });
        return { ...rest, items: decodeDead(rows, contents) };
      });
    },

    async findDead({ projectId, dlqId }) {
      const [dead] = await this.findDeadMany({ projectId, dlqIds: [dlqId] });
      return dead;
    },

    async findDeadMany({ projectId, dlqIds }) {
      const places = placesOf(dlqIds);
      if (places.length === 0) return [];
      const { rows, contents } = await connection.read('deadAt', { projectId, places });
      return decodeDead(rows, contents);
    },

    async countDead({ projectId, dlqIds }) {
      const places = placesOf(dlqIds);
      return places.length === 0 ? 0 : connection.read('countDead', { projectId, places });
    },

    async deleteDead({ projectId, dlqIds }) {
      const places = placesOf(dlqIds);
      if (places.length === 0) return 0;
      return connection.write('deleteDead', { projectId, places });
    },

    async retryDead({ projectId, retries, nowMs }) {
      const stored: Writes['retryDead']['args']['retries'] = [];
      for (const { dlqId, successor } of retries) {
        const place = placeOf(dlqId);
        if (!place) return 'missing';
        stored.push({ place, successor: encodeNewMessage(successor) });
      }
      return connection.write('retryDead', { projectId, retries: stored, nowMs });
    },
  };
}

function decodeDead(rows: readonly DeadRow[], contents: readonly ContentRow[]): DeadMessage[] {
  const messageByKey = new Map(contents.map((content) => [content.key, decodeMessage(content)]));
  return rows.map((row) => ({
    dlqId: dlqIdOf(row.timeMs, row.n),
    message: messageOf(messageByKey, row.n),
    deadLetter: decodeDeadLetter(row),
  }));
}
