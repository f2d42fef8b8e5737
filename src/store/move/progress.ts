/**
 * Saves the progress of a move in the target, in the same transactions as the rows, so that a killed move continues where it
 * stopped. Until the move is complete, servers refuse to open the target.
 */
import type { Driver, Queries, SqlValue, Transaction } from '../driver.ts';
import { appliedMigrations, MIGRATIONS, migrate, UNFINISHED_MOVE } from '../migrations/index.ts';
import type { RowKey } from './chunks.ts';
import { RowSum } from './row-sum.ts';
import { MOVED_TABLES, type MovedTable } from './tables.ts';

/** The reason why a move cannot start or continue. The message is for the operator. */
export class MoveRefused extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'MoveRefused';
  }
}

/** The position in `moves` of a table that is copied completely. Until then, the position is the last copied key. */
const COMPLETE = 'complete';
/** The name in `moves` of the fingerprint of the source. */
const SOURCE = 'source';

export type Progress = { kind: 'rows'; after: RowKey | undefined } | { kind: 'complete' };

/**
 * Prepares the target for the source that `fingerprint` identifies: migrates the schema of the target and marks the
 * target as unfinished. The target must be empty, or the target of an earlier try. Throws `MoveRefused` before any row is
 * changed.
 */
export async function startMove(target: Driver, fingerprint: string, { overwrite }: { overwrite: boolean }) {
  await migrate(target, MIGRATIONS, { forMove: true });
  await target.transaction(async (tx) => {
    const applied = await appliedMigrations(tx);
    const isMarked = applied.some(({ number }) => number === UNFINISHED_MOVE);
    checkVersion(
      applied.filter(({ number }) => number !== UNFINISHED_MOVE),
      'target',
    );
    if (isMarked && !overwrite) {
      if ((await positionOf(tx, SOURCE)) === fingerprint) return;
      throw new MoveRefused(
        'the target has a part of another store, or the source was used since the copy started; --overwrite starts again',
      );
    }
    if (!overwrite) await checkEmpty(tx);
    for (const { name } of MOVED_TABLES) await tx.run(`delete from ${name}`);
    await tx.run('create table if not exists moves (name text primary key, position text not null)');
    await tx.run('delete from moves');
    await tx.insertMany('moves', ['name', 'position'], [[SOURCE, fingerprint]]);
    if (isMarked) return;
    const mark = [UNFINISHED_MOVE, 'a move that is not complete', 1];
    await tx.insertMany('migrations', ['number', 'name', 'breaking'], [mark]);
  });
}

/** Throws `MoveRefused` unless the database has this program's schema, because unknown data would be lost. */
export function checkVersion(applied: readonly { number: number; name: string }[], side: 'source' | 'target'): void {
  const known = new Set(MIGRATIONS.map(({ number }) => number));
  const unknown = applied.find(({ number }) => !known.has(number));
  if (unknown) {
    throw new MoveRefused(`the ${side} was changed by a newer Waypost (migration "${unknown.name}"): use that version`);
  }
  if (applied.length < known.size) throw new MoveRefused(`the ${side} was last used by an older Waypost`);
}

async function checkEmpty(queries: Queries): Promise<void> {
  for (const { name } of MOVED_TABLES) {
    if (name === 'numbers') continue; // a new database has rows in `numbers` too
    const rows = await queries.query(`select 1 as one from ${name} limit 1`);
    if (rows.length > 0) throw new MoveRefused(`the target is not empty (${name}); --overwrite replaces its data`);
  }
}

/**
 * Identifies a store at one time, by its projects, its tokens and its number sequences. The sequences show any change, because
 * every message needs a number.
 */
export async function fingerprintOf(queries: Queries): Promise<string> {
  const sum = new RowSum();
  for (const name of ['numbers', 'projects', 'tokens']) {
    const table = MOVED_TABLES.find((candidate) => candidate.name === name);
    if (table === undefined) throw new Error(`there is no table ${name} to move`);
    const { columns } = table;
    const rows = await queries.query<Record<string, SqlValue>>(`select ${columns.join(', ')} from ${name}`);
    for (const row of rows) sum.add([name, ...columns.map((column) => row[column] ?? null)]);
  }
  return sum.checksum;
}

export async function progressOf(target: Driver, { name }: MovedTable): Promise<Progress> {
  const position = await target.read((queries) => positionOf(queries, name));
  if (position === COMPLETE) return { kind: 'complete' };
  return { kind: 'rows', after: position === undefined ? undefined : (JSON.parse(position) as RowKey) };
}

/** A missing `lastKey` means that the table is copied completely. */
export async function saveProgress(tx: Transaction, { name }: MovedTable, lastKey: RowKey | undefined): Promise<void> {
  const position = lastKey === undefined ? COMPLETE : JSON.stringify(lastKey);
  await tx.run('delete from moves where name = ?', [name]);
  await tx.insertMany('moves', ['name', 'position'], [[name, position]]);
}

/** Empties `tables` of the target, so that the next try copies them again. */
export function resetTables(target: Driver, tables: readonly string[]): Promise<void> {
  return target.transaction(async (tx) => {
    for (const name of tables) {
      await tx.run(`delete from ${name}`);
      await tx.run('delete from moves where name = ?', [name]);
    }
  });
}

/** Removes the mark and the progress from the target: from now on servers can open it. */
export function finishMove(target: Driver): Promise<void> {
  return target.transaction(async (tx) => {
    await tx.run('drop table moves');
    await tx.run('delete from migrations where number = ?', [UNFINISHED_MOVE]);
  });
}

async function positionOf(queries: Queries, name: string): Promise<string | undefined> {
  const [row] = await queries.query<{ position: string }>('select position from moves where name = ?', [name]);
  return row?.position;
}
