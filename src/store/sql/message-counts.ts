/** How many messages did a project have today, and may it have more (messaging.md 20.3)? */
import type { ProjectId } from '../../engine/model.ts';
import type { Transaction } from '../driver.ts';
import type { StoredNewMessage } from './rows.ts';

/** A publish under a limit. */
export interface CountedCommand {
  messages: readonly StoredNewMessage[];
  /** Absent: no limit. */
  messagesPerDayMax?: number;
}

/** What the commands of one batch leave of their projects' days. Nothing is asked of the store without a limit. */
export class DayBudgets {
  /** Messages of a project's day so far, in the store and in this batch. */
  readonly #used: Map<string, number>;

  private constructor(used: Map<string, number>) {
    this.#used = used;
  }

  static async read(tx: Transaction, commands: readonly CountedCommand[]): Promise<DayBudgets> {
    const used = new Map<string, number>();
    for (const { messages, messagesPerDayMax } of commands) {
      const [first] = messages;
      if (messagesPerDayMax === undefined || first?.countedDay === undefined) continue;
      const name = nameOf(first, first.countedDay);
      if (!used.has(name)) used.set(name, await lockCount(tx, projectOf(first), first.countedDay));
    }
    return new DayBudgets(used);
  }

  /**
   * Takes room for every message of a command, as all of them are saved or none. Otherwise takes nothing and answers how
   * many messages are left of the day.
   */
  take({ messages, messagesPerDayMax }: CountedCommand): 'taken' | { remaining: number } {
    const [first] = messages;
    if (messagesPerDayMax === undefined || first?.countedDay === undefined) return 'taken';
    const name = nameOf(first, first.countedDay);
    const used = this.#used.get(name) ?? 0;
    if (used + messages.length > messagesPerDayMax) return { remaining: Math.max(0, messagesPerDayMax - used) };
    this.#used.set(name, used + messages.length);
    return 'taken';
  }

  /** One message of a command that took room turned out to be a duplicate: nothing was made of it. */
  giveBack({ messages, messagesPerDayMax }: CountedCommand): void {
    const [first] = messages;
    if (messagesPerDayMax === undefined || first?.countedDay === undefined) return;
    const name = nameOf(first, first.countedDay);
    this.#used.set(name, (this.#used.get(name) ?? 0) - 1);
  }
}

/** Adds those of `messages` that count to their projects' days, whatever the limit: only a publish is refused. */
export async function countMessages(tx: Transaction, messages: readonly StoredNewMessage[]): Promise<void> {
  const added = new Map<string, [projectId: ProjectId, day: number, messages: number]>();
  for (const message of messages) {
    const { countedDay: day } = message;
    if (day === undefined) continue;
    const name = nameOf(message, day);
    const entry = added.get(name);
    if (entry) entry[2] += 1;
    else added.set(name, [projectOf(message), day, 1]);
  }
  for (const row of added.values()) {
    await tx.run(
      `insert into message_counts (project_id, day, messages) values (?, ?, ?)
       on conflict (project_id, day) do update set messages = message_counts.messages + excluded.messages`,
      row,
    );
  }
}

/** Reads a count that nobody else can change until this transaction ends: the write before takes the row's lock. */
async function lockCount(tx: Transaction, projectId: ProjectId, day: number): Promise<number> {
  const [row] = await tx.query<{ messages: number }>(
    `insert into message_counts (project_id, day, messages) values (?, ?, 0)
     on conflict (project_id, day) do update set messages = message_counts.messages
     returning messages`,
    [projectId, day],
  );
  if (!row) throw new Error(`the messages of project ${projectId} on day ${day} cannot be counted`);
  // The first message of a day finds those before it out of use.
  if (row.messages === 0) await tx.run('delete from message_counts where project_id = ? and day < ?', [projectId, day]);
  return row.messages;
}

function projectOf({ message }: StoredNewMessage): ProjectId {
  return message[1] as ProjectId;
}

function nameOf(message: StoredNewMessage, day: number): string {
  return `${projectOf(message)} ${day}`;
}
