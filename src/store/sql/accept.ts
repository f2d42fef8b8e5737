/** How do published messages enter the store, each at most once per deduplication id? */
import type { MessageId } from '../../engine/model.ts';
import type { Transaction } from '../driver.ts';
import type { WriteContext } from './log-writer.ts';
import { countMessages, DayBudgets } from './message-counts.ts';
import { CONTENT_COLUMNS, MESSAGE_COLUMNS, type StoredNewMessage } from './rows.ts';

export interface AcceptArgs {
  messages: StoredNewMessage[];
  nowMs: number;
  messagesPerDayMax?: number;
}

/**
 * One answer a message: the id of the message that stands for it already, or null when it was saved. Or what the day has
 * left, when that is less than the command has messages.
 */
export type AcceptAnswer = (MessageId | null)[] | { remaining: number };

/** Saves the messages of all `commands`, each of them all or none, in a handful of statements. */
export async function acceptAll(context: WriteContext, commands: readonly AcceptArgs[]): Promise<AcceptAnswer[]> {
  const reservations = await Reservations.read(context.tx, commands);
  const budgets = await DayBudgets.read(context.tx, commands);
  const saved: StoredNewMessage[] = [];
  const answers = commands.map((command): AcceptAnswer => {
    const room = budgets.take(command);
    if (room !== 'taken') return room;
    return command.messages.map((message) => {
      const first = reservations.firstOrReserve(message, command.nowMs);
      if (first === null) saved.push(message);
      else budgets.giveBack(command);
      return first;
    });
  });
  await reservations.write(context.tx);
  await insertMessages(context, saved);
  return answers;
}

export async function insertMessages({ tx, logs }: WriteContext, messages: readonly StoredNewMessage[]): Promise<void> {
  if (messages.length === 0) return;
  await countMessages(tx, messages);
  await tx.insertMany(
    'messages',
    MESSAGE_COLUMNS,
    messages.map(({ message }) => message),
  );
  await tx.insertMany(
    'contents',
    CONTENT_COLUMNS,
    messages.map(({ content }) => content),
  );
  await logs.append(
    tx,
    messages.map(({ message, events }) => ({
      key: message[0] as number,
      projectId: message[1] as number,
      events,
      floorMs: 0,
    })),
  );
}

/** Which deduplication ids are taken, in the store and by what came before in the same batch. */
class Reservations {
  readonly #taken: Map<string, { messageId: MessageId; expiresAtMs: number }>;
  readonly #added = new Map<string, [projectId: number, hash: string, messageId: string, expiresAtMs: number]>();

  private constructor(taken: Map<string, { messageId: MessageId; expiresAtMs: number }>) {
    this.#taken = taken;
  }

  static async read(tx: Transaction, commands: readonly AcceptArgs[]): Promise<Reservations> {
    const hashesByProject = new Map<number, string[]>();
    for (const { messages } of commands) {
      for (const { message, deduplication } of messages) {
        if (!deduplication) continue;
        const projectId = message[1] as number;
        const hashes = hashesByProject.get(projectId);
        if (hashes) hashes.push(deduplication.hash);
        else hashesByProject.set(projectId, [deduplication.hash]);
      }
    }
    const taken = new Map<string, { messageId: MessageId; expiresAtMs: number }>();
    for (const [projectId, hashes] of hashesByProject) {
      const rows = await tx.query<{ hash: string; message_id: string; expires_at_ms: number }>(
        'select hash, message_id, expires_at_ms from deduplications where project_id = ? and hash in (??)',
        [projectId, hashes],
      );
      for (const row of rows) {
        taken.set(`${projectId} ${row.hash}`, { messageId: row.message_id, expiresAtMs: row.expires_at_ms });
      }
    }
    return new Reservations(taken);
  }

  /** The message that has the id at `nowMs`; otherwise null, and `message` has it from now on. */
  firstOrReserve({ message, content, deduplication }: StoredNewMessage, nowMs: number): MessageId | null {
    if (!deduplication) return null;
    const { hash, expiresAtMs } = deduplication;
    const projectId = message[1] as number;
    const name = `${projectId} ${hash}`;
    const holder = this.#taken.get(name);
    // The window ends with its last millisecond; it is not extended by duplicates (messaging.md 11, item 4).
    if (holder && holder.expiresAtMs > nowMs) return holder.messageId;
    const messageId = content[2] as MessageId;
    this.#taken.set(name, { messageId, expiresAtMs });
    this.#added.set(name, [projectId, hash, messageId, expiresAtMs]);
    return null;
  }

  async write(tx: Transaction): Promise<void> {
    for (const row of this.#added.values()) {
      await tx.run(
        `insert into deduplications (project_id, hash, message_id, expires_at_ms) values (?, ?, ?, ?)
         on conflict (project_id, hash) do update
         set message_id = excluded.message_id, expires_at_ms = excluded.expires_at_ms`,
        row,
      );
    }
  }
}
