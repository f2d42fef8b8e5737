/** The daily limit of messages of a project (contract M 20.3). */
import type { Accepted } from '../../../engine/messages/accepted.ts';
import type { ProjectId } from '../../../engine/model.ts';
import type { Transaction } from '../../driver.ts';
import type { WriteContext } from '../logs/log-writer.ts';
import { CONTENT_AT, MESSAGE_AT } from './columns.ts';
import type { StoredNewMessage } from './rows.ts';

const DAY_MS = 86_400_000;

/** A publish that exceeds the project's daily limit of messages. */
type OverDayLimit = Extract<Accepted, { kind: 'overDayLimit' }>;

/** One day of a project. */
interface Day {
  projectId: ProjectId;
  /** Days since the Unix epoch, in UTC. */
  day: number;
}

/** The messages that projects may still publish today, for the publishes of one batch. Reads nothing without a limit. */
export class DayBudgets {
  /** The limit for one project on one day; 0: unlimited. */
  readonly #limit: number;
  /** Messages of a project's day so far, in the store and in this batch. */
  readonly #used = new Map<string, number>();

  private constructor(limit: number) {
    this.#limit = limit;
  }

  static async read(
    { tx, limits }: Pick<WriteContext, 'tx' | 'limits'>,
    publishes: readonly { messages: readonly StoredNewMessage[] }[],
  ): Promise<DayBudgets> {
    const budgets = new DayBudgets(limits.messagesPerDayMax);
    if (budgets.#limit === 0) return budgets;
    const used = budgets.#used;
    for (const [first] of publishes.map(({ messages }) => messages)) {
      if (first === undefined) continue;
      const day = dayOf(first);
      if (!used.has(nameOf(day))) used.set(nameOf(day), await lockCount(tx, day));
    }
    return budgets;
  }

  /** Reserves all messages of a publish, or none. */
  take(messages: readonly StoredNewMessage[]): 'taken' | OverDayLimit {
    const [first] = messages;
    const limit = this.#limit;
    if (first === undefined || limit === 0) return 'taken';
    const name = nameOf(dayOf(first));
    const used = this.#used.get(name) ?? 0;
    if (used + messages.length > limit) return { kind: 'overDayLimit', limit, remaining: Math.max(0, limit - used) };
    this.#used.set(name, used + messages.length);
    return 'taken';
  }

  /** Returns the reservation of a message that was not saved: a duplicate or a refused message. */
  giveBack(message: StoredNewMessage): void {
    const name = nameOf(dayOf(message));
    const used = this.#used.get(name);
    if (used !== undefined) this.#used.set(name, used - 1);
  }
}

/** Counts saved messages for the days of their projects, even beyond the limit, because only publishes are refused. */
export async function countMessages(tx: Transaction, messages: readonly StoredNewMessage[]): Promise<void> {
  const added = new Map<string, { day: Day; count: number }>();
  for (const message of messages) {
    const day = dayOf(message);
    const entry = added.get(nameOf(day));
    if (entry) entry.count += 1;
    else added.set(nameOf(day), { day, count: 1 });
  }
  for (const { day, count } of added.values()) {
    await tx.send(
      `insert into message_counts (project_id, day, messages) values (?, ?, ?)
       on conflict (project_id, day) do update set messages = message_counts.messages + excluded.messages`,
      [day.projectId, day.day, count],
    );
  }
}

/** Reads a count and locks its row, so that no other transaction changes the count until this transaction ends. */
async function lockCount(tx: Transaction, { projectId, day }: Day): Promise<number> {
  const [row] = await tx.query<{ messages: number }>(
    `insert into message_counts (project_id, day, messages) values (?, ?, 0)
     on conflict (project_id, day) do update set messages = message_counts.messages
     returning messages`,
    [projectId, day],
  );
  if (!row) throw new Error(`the messages of project ${projectId} on day ${day} cannot be counted`);
  // The first message of a day makes the counts of earlier days useless.
  if (row.messages === 0)
    await tx.send('delete from message_counts where project_id = ? and day < ?', [projectId, day]);
  return row.messages;
}

function dayOf({ message, content }: StoredNewMessage): Day {
  return {
    projectId: message[MESSAGE_AT.project_id],
    day: Math.floor(content[CONTENT_AT.created_at_ms] / DAY_MS),
  };
}

function nameOf({ projectId, day }: Day): string {
  return `${projectId} ${day}`;
}
