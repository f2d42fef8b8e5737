/** Reads a database file without the server: which messages and runs it holds, and whether their parts agree (P2, P3). */
import { DatabaseSync } from 'node:sqlite';
import { codeOfLogState } from '../../src/store/operations/messages/rows.ts';

export interface StoredMessages {
  /**
   * Messages that wait or are in flight, are dead, or have an ending in their logs; waits and invocations of journals;
   * and, by their ids, runs that are over.
   */
  accountedFor: Set<string>;
  /** Messages whose parts contradict each other: halves of a transaction. */
  torn: string[];
  integrity: string[];
  /** False before the tables were made. */
  isMigrated: boolean;
}

interface Row {
  id: string;
  unfinished: number;
  dead: number;
  created: number;
  endings: number;
  failures: number;
  /** 1 for an entry of a journal that is no message. */
  record: number;
}

interface RunRow {
  id: string;
  state: number;
  entries: number;
  journal: number;
  started: number;
  endings: number;
  failures: number;
  dead: number;
}

/** Throws when SQLite cannot open the file at all. */
export function readStoredMessages(path: string): StoredMessages {
  const database = new DatabaseSync(path);
  try {
    const integrity = database
      .prepare('pragma integrity_check')
      .all()
      .map((row) => String(row['integrity_check']));
    // A cut before the migrations, one transaction, were committed leaves a sound and empty file.
    const schema = database.prepare("select count(*) as n from sqlite_schema where name = 'contents'").get();
    const isMigrated = schema?.['n'] !== 0;
    const stored: StoredMessages = { accountedFor: new Set(), torn: [], integrity, isMigrated };
    if (!isMigrated) return stored;
    for (const row of database.prepare(QUERY).all() as unknown as Row[]) {
      const isFinished = row.endings === 1;
      const agrees =
        row.record === 1
          ? row.created + row.endings + row.unfinished + row.dead === 0
          : row.created === 1 &&
            row.endings <= 1 &&
            row.unfinished === (isFinished ? 0 : 1) &&
            row.dead === row.failures;
      if (agrees) stored.accountedFor.add(row.id);
      else stored.torn.push(JSON.stringify(row));
    }
    for (const row of database.prepare(RUNS).all() as unknown as RunRow[]) {
      const isOver = row.state !== ACTIVE;
      const agrees = row.started === 1 && row.endings === (isOver ? 1 : 0) && row.entries === row.journal;
      if (!agrees || row.dead !== row.failures) stored.torn.push(JSON.stringify(row));
      else if (isOver) stored.accountedFor.add(row.id);
    }
    return stored;
  } finally {
    database.close();
  }
}

const [created, delivered, failed, canceled] = (['CREATED', 'DELIVERED', 'FAILED', 'CANCELED'] as const).map(
  codeOfLogState,
);

const QUERY = `select contents.id as id,
  (select count(*) from messages where messages.key = contents.key) as unfinished,
  (select count(*) from dead where dead.key = contents.key) as dead,
  coalesce(sum(logs.state = ${created}), 0) as created,
  coalesce(sum(logs.state in (${delivered}, ${failed}, ${canceled})), 0) as endings,
  coalesce(sum(logs.state = ${failed}), 0) as failures,
  exists (select 1 from journal where journal.key = contents.key and substr(journal.entry_key, 1, 1) in ('w', 'i')) as record
from contents left join logs on logs.message_key = contents.key
group by contents.key`;

const ACTIVE = 1;
const [started, success, runFailed, runCanceled] = (
  ['RUN_STARTED', 'RUN_SUCCESS', 'RUN_FAILED', 'RUN_CANCELED'] as const
).map(codeOfLogState);

const RUNS = `select runs.id as id, runs.state as state, runs.entries as entries,
  (select count(*) from journal where journal.run_key = runs.key) as journal,
  (select count(*) from dead where dead.run_key = runs.key) as dead,
  coalesce(sum(logs.state = ${started}), 0) as started,
  coalesce(sum(logs.state in (${success}, ${runFailed}, ${runCanceled})), 0) as endings,
  coalesce(sum(logs.state = ${runFailed}), 0) as failures
from runs left join logs on logs.run_key = runs.key
group by runs.key`;
