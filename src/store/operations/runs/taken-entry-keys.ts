/** Finds the entry keys that journals already have, in the store or by earlier messages of the batch (P8). */
import type { MessageId } from '../../../engine/model.ts';
import type { MessageSettings } from '../../../protocol/options/settings.ts';
import type { Transaction } from '../../driver.ts';
import { ENTRY_KIND, type StoredEntry } from './run-rows.ts';

/** The saved message that a duplicate repeats. */
export interface EarlierMessage {
  messageId: MessageId;
  /** For an invocation: the run that the earlier message started. */
  run?: { id: string; createdAtMs: number };
}

type EntryRef = Pick<StoredEntry, 'runKey' | 'entryKey'>;

interface EntryRow {
  run_key: number;
  entryKey: string;
  id: string;
  /** Null unless the entry is an invocation. */
  settings: string | null;
}

export class TakenEntryKeys {
  readonly #holders = new Map<string, EarlierMessage>();

  /** Looks up the entry keys of `entries`. */
  async load(tx: Transaction, entries: readonly EntryRef[]): Promise<void> {
    const rows: EntryRow[] = [];
    for (const { runKeys, entryKeys } of lookupsFor(entries)) {
      // The order keeps the planner from walking whole journals instead of their entry keys.
      const found = await tx.query<EntryRow>(
        `select j.run_key, j.entry_key as "entryKey", c.id, case when j.kind = ${ENTRY_KIND.invoke} then c.settings end as settings
         from journal j lookup contents c on (c.key = j.key) where j.run_key in (??) and j.entry_key in (??)
         order by j.run_key, j.entry_key`,
        [runKeys, entryKeys],
      );
      rows.push(...found);
    }
    const invoked = await firstMessagesOf(tx, rows);
    for (const row of rows) {
      const child = invokedIn(row);
      const messageId = child && invoked.get(child.runKey);
      const run = child && messageId !== undefined ? { id: child.runId, createdAtMs: child.createdAtMs } : undefined;
      this.take(
        { runKey: row.run_key, entryKey: row.entryKey },
        { messageId: messageId ?? row.id, ...(run && { run }) },
      );
    }
  }

  /** The message that has the entry key of `entry`. For an invocation it is the first message of the invoked run. */
  holderOf(entry: EntryRef): EarlierMessage | undefined {
    return this.#holders.get(nameOf(entry));
  }

  take(entry: EntryRef, holder: EarlierMessage): void {
    this.#holders.set(nameOf(entry), holder);
  }
}

/**
 * Groups entries so that a few statements look up exactly these entries. Often many entries are of one run (a parallel
 * group), or are the same step of many runs.
 */
function lookupsFor(entries: readonly EntryRef[]): { runKeys: number[]; entryKeys: string[] }[] {
  const byRun = Map.groupBy(entries, ({ runKey }) => runKey);
  const byEntryKey = Map.groupBy(entries, ({ entryKey }) => entryKey);
  if (byRun.size <= byEntryKey.size) {
    return [...byRun].map(([runKey, of]) => ({ runKeys: [runKey], entryKeys: of.map(({ entryKey }) => entryKey) }));
  }
  return [...byEntryKey].map(([entryKey, of]) => ({ runKeys: of.map(({ runKey }) => runKey), entryKeys: [entryKey] }));
}

/** The ids of the first messages of the runs that `rows` invoked, by run key. Dropped runs are missing. */
async function firstMessagesOf(tx: Transaction, rows: readonly EntryRow[]): Promise<Map<number, MessageId>> {
  const keys = rows.flatMap((row) => invokedIn(row)?.runKey ?? []);
  if (keys.length === 0) return new Map();
  const found = await tx.query<{ run_key: number; id: string }>(
    `select j.run_key, c.id from journal j lookup contents c on (c.key = j.key)
     where j.run_key in (??) and j.position = 0`,
    [keys],
  );
  return new Map(found.map((row) => [row.run_key, row.id]));
}

function invokedIn({ settings }: EntryRow): MessageSettings['invoke'] {
  return settings === null ? undefined : (JSON.parse(settings) as MessageSettings).invoke;
}

function nameOf({ runKey, entryKey }: EntryRef): string {
  return `${runKey} ${entryKey}`;
}
