/** Saves published messages, at most one per deduplication id. */
import type { Accepted, Saved } from '../../../engine/messages/accepted.ts';
import type { JournalPosition, MessageId, NewMessage } from '../../../engine/model.ts';
import type { Transaction } from '../../driver.ts';
import { type AdmittedState, MessageAdmission } from '../lanes/admission.ts';
import { BATCH_SIZE, mapInBatches } from '../lists/read-page.ts';
import { byProject } from '../locking/by-project.ts';
import type { WriteContext } from '../logs/log-writer.ts';
import { merged, type Pause } from '../operation.ts';
import { Journals } from '../runs/journals.ts';
import type { EarlierMessage } from '../runs/taken-entry-keys.ts';
import { CONTENT_AT, MESSAGE_AT } from './columns.ts';
import { DayBudgets } from './message-counts.ts';
import { encodeNewMessage, projectOf, projectsSharedBy, type StoredNewMessage, weightOf } from './rows.ts';

export interface AcceptArgs<M = StoredNewMessage> {
  messages: M[];
  nowMs: number;
  /**
   * The version of the accounts with which the caller's token was checked. If the store has a newer version, nothing is
   * saved.
   */
  accountsVersion?: number | undefined;
}

/**
 * Saves the messages of commands, and returns a result for each command, in order. All messages of a command are of one
 * project. A duplicate is skipped, and its result names the first message. A message is also skipped if its new queue
 * would exceed the limit of queues. If the command has more messages, duplicates included, than the project may still
 * publish today, nothing of the command is saved. Only saved messages count for the day.
 */
export const accept = merged(
  {
    class: ({ messages }) => (messages.every(continuesRun) ? 'onward' : 'accept'),
    weight: ({ messages }) => weightOf(messages),
    touches: ({ messages }, limits) => ({
      projects: projectsSharedBy(messages, limits),
      writes: messages.map(projectOf),
    }),
  },
  async (context: WriteContext, commands: readonly AcceptArgs[]): Promise<Accepted[][]> => {
    const reservations = await Reservations.read(context.tx, commands);
    const nowMs = Math.max(...commands.map((command) => command.nowMs));
    const admission = new MessageAdmission(context, nowMs);
    await admission.loadQueues(commands.flatMap(({ messages }) => messages));
    const budgets = await DayBudgets.read(context, commands);
    const journals = await Journals.load(
      context,
      commands.flatMap(({ messages }) => messages),
      context.limits.journalBytesMax,
    );
    const saved: StoredNewMessage[] = [];
    const positions: (JournalPosition | undefined)[] = [];
    /** The result of a message is undefined while the message is saved but its state is not known yet. */
    const results: (Accepted | undefined)[][] = [];
    for (const command of commands) {
      const refusal = journals?.refusalOf(command.messages);
      if (refusal) {
        results.push(command.messages.map(() => refusal));
        continue;
      }
      const result: (Accepted | undefined)[] = [];
      const budget = budgets.take(command.messages);
      for (const message of command.messages) {
        const duplicateOf = journals?.duplicateOf(message) ?? reservations.holderOf(message, command.nowMs);
        if (budget !== 'taken') {
          result.push(budget);
        } else if (duplicateOf !== null) {
          budgets.giveBack(message);
          journals?.linkToActive(message);
          result.push({ kind: 'duplicate', ...duplicateOf });
        } else if (await admission.hasQueue(message)) {
          reservations.reserve(message);
          positions.push(journals?.append(message));
          saved.push(message);
          result.push(undefined);
        } else {
          budgets.giveBack(message);
          result.push({ kind: 'tooManyQueues' });
        }
      }
      results.push(result);
    }
    await reservations.write(context.tx);
    await journals?.save();
    const states = await admission.insert(saved);
    let next = 0;
    const nextSaved = (): Saved => {
      const at = next++;
      return savedState(states[at] ?? 'due', positions[at]);
    };
    return results.map((result) => result.map((as) => as ?? { kind: 'accepted', ...nextSaved() }));
  },
  encodeAccept,
);

/** Encodes a few messages without a pause, so that consecutive calls are written in the order of the calls. */
function encodeAccept(args: AcceptArgs<NewMessage>, pause: Pause): AcceptArgs | Promise<AcceptArgs> {
  const { messages } = args;
  if (messages.length < BATCH_SIZE) return { ...args, messages: messages.map(encodeNewMessage) };
  return mapInBatches(messages, encodeNewMessage, pause).then((encoded) => ({ ...args, messages: encoded }));
}

/**
 * Saves messages without checking limits, and creates missing queues. Drops only journal entries: those whose run has
 * ended, and those whose entry key the journal already has. `loaded` has the journals of `messages`, if the caller has
 * read these journals in this transaction.
 */
export async function insertMessages(
  context: WriteContext,
  messages: readonly StoredNewMessage[],
  nowMs: number,
  loaded?: Journals,
): Promise<Saved[]> {
  const admission = new MessageAdmission(context, nowMs);
  const journals = loaded ?? (await Journals.load(context, messages, 0));
  const positions = new Map<StoredNewMessage, JournalPosition | undefined>();
  const taken = new Map<StoredNewMessage, MessageId>();
  for (const message of messages) {
    if (!journals || journals.accepts(message)) {
      positions.set(message, journals?.append(message));
      continue;
    }
    const earlier = journals.duplicateOf(message);
    if (earlier) taken.set(message, earlier.messageId);
    await journals.keepForLog(message);
  }
  const saved = [...positions.keys()];
  await admission.makeQueues(saved);
  await journals?.save();
  const states = new Map((await admission.insert(saved)).map((state, index) => [saved[index], state]));
  return messages.map((message) => {
    const state = states.get(message);
    if (state !== undefined) return savedState(state, positions.get(message));
    const messageId = taken.get(message);
    return messageId === undefined ? { state: 'dropped' } : { state: 'dropped', messageId };
  });
}

/** Whether a message continues a run: a step, an invoked run, or the second phase of a trigger. */
function continuesRun({ entry, run }: StoredNewMessage): boolean {
  return entry !== undefined && (run === undefined || run.isBySdk || run.invoker !== null);
}

export function savedState(state: AdmittedState, journal: JournalPosition | undefined): Saved {
  return journal ? { state, journal } : { state };
}

/** The deduplication ids that are taken, in the store and by earlier messages of the batch. */
class Reservations {
  readonly #taken: Map<string, { messageId: MessageId; expiresAtMs: number }>;
  readonly #added = new Map<string, [projectId: number, hash: string, messageId: string, expiresAtMs: number]>();

  private constructor(taken: Map<string, { messageId: MessageId; expiresAtMs: number }>) {
    this.#taken = taken;
  }

  static async read(tx: Transaction, commands: readonly AcceptArgs[]): Promise<Reservations> {
    const wanted = commands.flatMap(({ messages }) =>
      messages.flatMap(({ message, deduplication }) =>
        deduplication ? [{ projectId: message[MESSAGE_AT.project_id], hash: deduplication.hash }] : [],
      ),
    );
    const taken = new Map<string, { messageId: MessageId; expiresAtMs: number }>();
    for (const [projectId, hashes] of byProject(wanted, ({ hash }) => hash)) {
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

  /** The message that has the deduplication id of `message` at `nowMs`. Returns null if no message has the id. */
  holderOf({ message, deduplication }: StoredNewMessage, nowMs: number): EarlierMessage | null {
    if (!deduplication) return null;
    const holder = this.#taken.get(`${message[MESSAGE_AT.project_id]} ${deduplication.hash}`);
    // A deduplication window ends with its last millisecond, and duplicates do not extend it.
    return holder && holder.expiresAtMs > nowMs ? { messageId: holder.messageId } : null;
  }

  /** Reserves the deduplication id of `message`. */
  reserve({ message, content, deduplication }: StoredNewMessage): void {
    if (!deduplication) return;
    const { hash, expiresAtMs } = deduplication;
    const projectId = message[MESSAGE_AT.project_id];
    const messageId = content[CONTENT_AT.id];
    this.#taken.set(`${projectId} ${hash}`, { messageId, expiresAtMs });
    this.#added.set(`${projectId} ${hash}`, [projectId, hash, messageId, expiresAtMs]);
  }

  async write(tx: Transaction): Promise<void> {
    for (const row of this.#added.values()) {
      await tx.send(
        `insert into deduplications (project_id, hash, message_id, expires_at_ms) values (?, ?, ?, ?)
         on conflict (project_id, hash) do update
         set message_id = excluded.message_id, expires_at_ms = excluded.expires_at_ms`,
        row,
      );
    }
  }
}
