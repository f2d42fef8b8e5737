/** How are facts counted, and how is the operator told of them? */
import type { OperatorEventStore } from '../../engine/operator-events/model.ts';
import type { Connection } from '../connection.ts';
import { encodeNewMessage } from '../operations/messages/rows.ts';

export function operatorEventsOver(connection: Connection): OperatorEventStore {
  return {
    noteFacts(args) {
      return connection.write('noteFacts', args);
    },

    async gatherFacts(args) {
      const { nextAtMs, ...gathered } = await connection.write('gatherFacts', args);
      return { ...gathered, nextAtMs: nextAtMs ?? undefined };
    },

    noteTold(args) {
      return connection.write('noteTold', args);
    },

    tellTally({ message, ...args }) {
      return connection.write('tellTally', { ...args, message: encodeNewMessage(message) });
    },
  };
}
