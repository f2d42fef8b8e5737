/** How much of a transaction does a command take up? */
import type { StoredEvent, StoredNewMessage } from './sql/rows.ts';
import type { WriteCommand } from './writes.ts';

/** Of what a command does, about: messages that are touched, and body bytes that are carried. */
interface Weight {
  rows: number;
  bytes: number;
}

/** Cost of one transaction: the rows of small messages. Longer transactions stall the rest. */
export const BATCH_COST_MAX = 200;
/** So many bytes cost as much as a row: 4 MiB fill a transaction. */
const BYTES_PER_ROW = (4 * 1024 * 1024) / BATCH_COST_MAX;

/** At least 1. */
export function costOf(command: WriteCommand): number {
  return cost(weigh(command));
}

/** At least 1. */
export function costOfMessages(messages: readonly StoredNewMessage[]): number {
  return cost({ rows: messages.length, bytes: bodyBytes(messages) });
}

function cost({ rows, bytes }: Weight): number {
  return Math.max(1, rows, Math.ceil(bytes / BYTES_PER_ROW));
}

function weigh(command: WriteCommand): Weight {
  switch (command.method) {
    case 'accept':
      return { rows: command.args.messages.length, bytes: bodyBytes(command.args.messages) };
    case 'reviveDead':
      return {
        rows: command.args.revivals.length,
        bytes: bodyBytes(command.args.revivals.map(({ successor }) => successor)),
      };
    case 'changeSchedules': {
      const messages = command.args.changes.flatMap((change) => change.messages);
      return { rows: command.args.changes.length + messages.length, bytes: bodyBytes(messages) };
    }
    case 'resolveWaiters': {
      const results = command.args.resolutions.map(({ result }) => result);
      return { rows: results.length, bytes: bodyBytes(results) };
    }
    case 'addWaiter': {
      const { wait, taken } = command.args;
      return { rows: 2, bytes: bodyBytes(taken ? [wait.record, taken.result] : [wait.record]) };
    }
    case 'saveMail':
      return { rows: 1, bytes: command.args.body?.byteLength ?? 0 };
    case 'saveSchedule':
      return { rows: 2, bytes: bodyBytes([{ content: command.args.schedule.plan }]) };
    case 'settle': {
      const { events, follows = [] } = command.args.settlement.change;
      return { rows: 1 + follows.length, bytes: answerBytes(events) + bodyBytes(follows) };
    }
    case 'endRuns': {
      const follows = command.args.endings.flatMap((end) => end.follows);
      return { rows: command.args.endings.length + follows.length, bytes: bodyBytes(follows) };
    }
    case 'claim':
      return { rows: command.args.request.limit, bytes: 0 };
    case 'release':
      return { rows: command.args.claims.length, bytes: 0 };
    case 'cancel':
      return { rows: command.args.keys.length, bytes: 0 };
    case 'deleteDead':
      return { rows: command.args.places.length, bytes: 0 };
    case 'emptyQueue':
      return { rows: command.args.count, bytes: 0 };
    case 'addEndpoints':
      return { rows: command.args.endpoints.length, bytes: 0 };
    case 'dropExpired':
      return { rows: command.args.rowsMax, bytes: 0 };
    default:
      return { rows: 1, bytes: 0 };
  }
}

/** The endpoint's answer is the last value of an event's detail; a burial holds the same bytes. */
function answerBytes(events: readonly StoredEvent[]): number {
  return events.reduce((sum, [, , detail]) => {
    const body = detail?.at(-1);
    return sum + (body instanceof Uint8Array ? body.byteLength : 0);
  }, 0);
}

function bodyBytes(messages: readonly { content: readonly unknown[] }[]): number {
  return messages.reduce((sum, { content }) => {
    const body = content.at(-1);
    return sum + (body instanceof Uint8Array ? body.byteLength : 0);
  }, 0);
}
