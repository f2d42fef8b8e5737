/** How are messages in the DLQ listed? All else that is done with them is an operation of its own. */
import type { DeadMessageStore } from '../../engine/stores.ts';
import type { Connection } from '../connection.ts';
import * as dead from '../operations/messages/dead.ts';
import { decodeDead } from '../operations/messages/dead.ts';
import { derive } from './derive.ts';
import { keysOf, readPage } from './pages.ts';

export function deadOver(connection: Connection): DeadMessageStore {
  return {
    ...derive(connection, dead),

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
        return { ...rest, items: decodeDead({ rows, contents }) };
      });
    },
  };
}
