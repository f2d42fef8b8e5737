/** How much goes into one transaction? */
import type { WriteCommand } from './batch.ts';
import type { StoredEvent } from './sql/rows.ts';

/** Of what goes into one transaction, about: messages that are touched, and body bytes that are carried. */
export interface Weight {
  rows: number;
  bytes: number;
}

/** Longer transactions stall the rest. */
export const TOGETHER_MAX: Weight = { rows: 200, bytes: 4 * 1024 * 1024 };

/**
 * How many of `waiting`, from the first on, go into one transaction: in order of arrival, so that no kind of command can starve
 * another. One alone may weigh more than `max`.
 */
export function countTogether<T>(
  waiting: readonly T[],
  weightOf: (each: T) => Weight,
  max: Weight = TOGETHER_MAX,
): number {
  if (waiting.length <= 1) return waiting.length;
  let count = 0;
  let rows = 0;
  let bytes = 0;
  for (const each of waiting) {
    const weight = weightOf(each);
    rows += weight.rows;
    bytes += weight.bytes;
    if (count > 0 && (rows > max.rows || bytes > max.bytes)) break;
    count += 1;
  }
  return count;
}

/** Of commands that must stay together. */
export function weighAll(commands: readonly WriteCommand[]): Weight {
  const whole = { rows: 0, bytes: 0 };
  for (const command of commands) {
    const { rows, bytes } = weigh(command);
    whole.rows += rows;
    whole.bytes += bytes;
  }
  return whole;
}

export function weigh(command: WriteCommand): Weight {
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
