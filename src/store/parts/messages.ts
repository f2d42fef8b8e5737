/** How are messages accepted, claimed, settled, found and cancelled? */
import type { NewMessage } from '../../engine/model.ts';
import type { MessageStore, Settled } from '../../engine/stores.ts';
import { keyOfMessageId } from '../../protocol/ids.ts';
import type { Connection } from '../connection.ts';
import type { Writes } from '../operations/all.ts';
import {
  decodeMessage,
  encodeNewMessage,
  encodeSettlement,
  type StoredNewMessage,
} from '../operations/messages/rows.ts';
import { decodeClaimed, decodeLive, decodeUnfinished } from './decode-lanes.ts';
import { keysOf, readPage, TOGETHER } from './pages.ts';

/** Messages cancelled in one transaction, about a millisecond of work: publishes never wait for more. */
const CANCELLED_TOGETHER = 50;
/** Messages of a bulk cancel that are looked for at a time. */
const LOOKED_FOR = 500;

/** Unfinished messages looked at for a page: first few, since most pages are full then, and then as many as a page may cost. */
const FIRST_WINDOW = 1_000;
const WINDOW = 10_000;
const UNFINISHED_WINDOWS_MAX = 2;

export function messagesOver(connection: Connection): MessageStore {
  return {
    accept(messages, nowMs, accountsVersion) {
      const write = (encoded: StoredNewMessage[]) => {
        const args: Writes['accept']['args'] = { messages: encoded, nowMs };
        if (accountsVersion !== undefined) args.accountsVersion = accountsVersion;
        return connection.write('accept', args);
      };
      // Few messages are encoded without a pause, so that calls one after another are written in their order.
      return messages.length < TOGETHER
        ? write(messages.map(encodeNewMessage))
        : encodeInTurns(messages, connection).then(write);
    },

    async claim(request, nowMs) {
      const { claimed, waitingLines, emptied, nextDueAtMs, isLocked, turns } = await connection.write('claim', {
        request,
        nowMs,
      });
      return {
        claimed: claimed.map(decodeClaimed),
        waitingLines,
        emptied,
        nextDueAtMs: nextDueAtMs ?? undefined,
        isLocked,
        turns,
      };
    },

    settle(settlement, nowMs, handoff) {
      const args: Writes['settle']['args'] = { settlement: encodeSettlement(settlement), nowMs };
      if (handoff) args.handoff = handoff;
      return connection.write('settle', args).then(decodeSettled);
    },

    checkpoint({ done, follows }, nowMs) {
      const args = { done: done.map(encodeSettlement), follows: follows.map(encodeNewMessage), nowMs };
      return connection.write('checkpoint', args);
    },

    release(claims, nowMs) {
      return connection.write('release', { claims, nowMs });
    },

    releaseAll(nowMs, upToToken = Number.MAX_SAFE_INTEGER) {
      return connection.write('releaseAll', { upToToken, nowMs });
    },

    lastClaim() {
      return connection.read('lastClaim', {});
    },

    sendHeldOn(nowMs) {
      return connection.write('sendHeldOn', { nowMs });
    },

    waitingLines(piece) {
      return connection.read('waitingLines', piece);
    },

    async find(projectId, id, deliveredSinceMs) {
      const key = keyOfMessageId(id);
      if (key === undefined) return undefined;
      const row = await connection.read('find', { projectId, key, id, deliveredSinceMs });
      return row === null ? undefined : decodeMessage(row);
    },

    async findLive(projectId, id, nowMs) {
      const key = keyOfMessageId(id);
      if (key === undefined) return undefined;
      const rows = await connection.read('findLive', { projectId, key, id, nowMs });
      return rows === null ? undefined : decodeLive(rows, nowMs);
    },

    async listUnfinished({ projectId, filter, page, nowMs }) {
      const { messageId, standing, ...attributes } = filter;
      const messages = messageId && { ids: messageId, keys: keysOf(messageId) };
      return readPage(
        {},
        { ...page, order: 'latestFirst' },
        async (slice, window) => {
          const read = await connection.read('listUnfinished', {
            ...{ projectId, filter: attributes, slice, nowMs },
            window: window === 0 ? Math.max(slice.count + 1, FIRST_WINDOW) : WINDOW,
            ...(messages ? { messages } : {}),
            ...(standing ? { standings: standing } : {}),
          });
          return { ...read, items: decodeUnfinished(read, nowMs) };
        },
        UNFINISHED_WINDOWS_MAX,
      );
    },

    async cancelById(projectId, ids, nowMs) {
      const keys = keysOf(ids);
      if (keys.length === 0) return 0;
      return connection.write('cancel', {
        projectId,
        keys,
        ids,
        countMarked: true,
        nowMs,
      });
    },

    /** Searches outside the writer's transactions, which delays no other work, and cancels what is still unfinished. */
    async cancelMatching(projectId, filter, afterKey, nowMs, limit = LOOKED_FOR) {
      const args = { projectId, filter, afterKey, limit: Math.min(limit, LOOKED_FOR) };
      const { keys, nextAfterKey } = await connection.read('findCandidates', args);
      let cancelled = 0;
      for (let at = 0; at < keys.length; at += CANCELLED_TOGETHER) {
        const piece = keys.slice(at, at + CANCELLED_TOGETHER);
        cancelled += await connection.write('cancel', { projectId, keys: piece, countMarked: false, nowMs });
      }
      return { cancelled, ...(nextAfterKey !== undefined && { nextAfterKey }) };
    },

    async makeDue(projectId, id, nowMs) {
      const key = keyOfMessageId(id);
      return key === undefined ? 'missing' : connection.write('makeDue', { projectId, key, id, nowMs });
    },

    reserveNumbers(count) {
      return connection.write('reserveNumbers', { count });
    },
  };
}

function decodeSettled(answer: Writes['settle']['answer']): Settled {
  if (answer.kind !== 'saved') return answer;
  const { next, ...settled } = answer;
  return next ? { ...settled, next: decodeClaimed(next) } : settled;
}

async function encodeInTurns(messages: readonly NewMessage[], { endOfTurn }: Connection): Promise<StoredNewMessage[]> {
  const encoded: StoredNewMessage[] = [];
  for (const message of messages) {
    encoded.push(encodeNewMessage(message));
    if (encoded.length % TOGETHER === 0) await endOfTurn?.();
  }
  return encoded;
}
