/**
 * Makes a project's rows in the target equal to the project's rows in the source, in chunks. Each chunk is one
 * transaction, which writes rows with the dependent rows and contents of these rows. Rows that are equal on both sides
 * are not written; where digests are equal, the rows are not even read. So the alignment can run again after an
 * interruption, repeatedly while the project is in use, and a last time while the project is paused.
 */
import type { Driver, Queries, SqlValue, Transaction } from '../../store/driver.ts';
import { CHUNK_LIMITS, type ChunkLimits, type RowKey } from '../../store/move/chunks.ts';
import type { CopiedTable } from '../../store/move/copy.ts';
import { MoveRefused } from '../../store/move/progress.ts';
import { RowSum } from '../../store/move/row-sum.ts';
import { dropUnreferencedContents } from '../../store/operations/retention.ts';
import { keyColumnsOf, removeDependents, removeRange } from './remove.ts';
import {
  type DependentTable,
  type Digest,
  digestOf,
  digestsOf,
  keysOf,
  type Row,
  type RowGroup,
  type RowRange,
  rangeCondition,
  type TimeRange,
  tableOf,
  timesOf,
  valuesOf,
} from './row-groups.ts';

interface AlignerOptions {
  source: Pick<Driver, 'read'>;
  target: Driver;
  projectId: number;
  limits?: ChunkLimits;
}

type OnChunk = (chunk: { table: string; rows: number }) => void;

/** A range that differs is divided into this many sections, which are divided again until a section has few rows. */
const SECTIONS = 64;
const FEW_ROWS = 4_000;

const CONTENTS = tableOf('contents');

export class Aligner {
  readonly #source: Pick<Driver, 'read'>;
  readonly #target: Driver;
  readonly #projectId: number;
  readonly #limits: ChunkLimits;
  /** Called after each written chunk. */
  readonly #onChunk: OnChunk;

  constructor({ source, target, projectId, limits = CHUNK_LIMITS }: AlignerOptions, onChunk: OnChunk) {
    this.#source = source;
    this.#target = target;
    this.#projectId = projectId;
    this.#limits = limits;
    this.#onChunk = onChunk;
  }

  /** Aligns a group with a digest, for times from `sinceMs` on. Returns the number of written rows. */
  async alignHistory(group: RowGroup, sinceMs = 0): Promise<number> {
    const times = await this.#timesOf(group);
    if (times === undefined) return 0;
    const range = { ...times, fromMs: Math.max(times.fromMs, sinceMs) };
    if (range.fromMs >= range.toMs) return 0;
    const [sourceDigest, targetDigest] = await this.#both((queries) =>
      digestOf(queries, group, this.#projectId, range),
    );
    return this.#alignRange(group, range, sourceDigest, targetDigest);
  }

  /** Whether the digests of both sides show the same rows. */
  async compareHistory(group: RowGroup): Promise<CopiedTable & { isEqual: boolean }> {
    const [sourceDigest, targetDigest] = await this.#both((queries) =>
      digestOf(queries, group, this.#projectId, undefined),
    );
    return {
      table: group.table.name,
      rows: sourceDigest.rows,
      checksum: String(sourceDigest.sum),
      isEqual: isEqual(sourceDigest, targetDigest),
    };
  }

  /** Aligns a group without a digest: reads all rows on both sides. */
  async alignCurrent(group: RowGroup): Promise<CopiedTable> {
    const sum = new RowSum();
    await this.#copy(group, undefined, { sum });
    return { table: group.table.name, rows: sum.rows, checksum: sum.checksum };
  }

  /** The smallest range of times that contains the rows of both sides. */
  async #timesOf(group: RowGroup): Promise<TimeRange | undefined> {
    const found = await this.#both((queries) => timesOf(queries, group, this.#projectId));
    const ranges = found.filter((range) => range !== undefined);
    if (ranges.length === 0) return undefined;
    return {
      fromMs: Math.min(...ranges.map(({ fromMs }) => fromMs)),
      toMs: Math.max(...ranges.map(({ toMs }) => toMs)),
    };
  }

  /** Aligns a range whose digests are known. */
  async #alignRange(
    group: RowGroup,
    range: TimeRange,
    sourceDigest = NO_ROWS,
    targetDigest = NO_ROWS,
  ): Promise<number> {
    if (isEqual(sourceDigest, targetDigest)) return 0;
    const spanMs = range.toMs - range.fromMs;
    const isSmall = sourceDigest.rows === 0 || sourceDigest.rows + targetDigest.rows <= FEW_ROWS || spanMs === 1;
    if (isSmall || targetDigest.rows === 0) return this.#copy(group, range, { isEmpty: targetDigest.rows === 0 });
    const widthMs = Math.ceil(spanMs / SECTIONS);
    const [sourceSections, targetSections] = await this.#both((queries) =>
      digestsOf(queries, group, this.#projectId, { range, widthMs }),
    );
    let written = 0;
    for (const section of new Set([...sourceSections.keys(), ...targetSections.keys()])) {
      const fromMs = range.fromMs + section * widthMs;
      const sectionTimes = { fromMs, toMs: Math.min(fromMs + widthMs, range.toMs) };
      written += await this.#alignRange(group, sectionTimes, sourceSections.get(section), targetSections.get(section));
    }
    return written;
  }

  /** Compares the rows of both sides. Returns the number of written rows. `isEmpty`: the target has no rows. */
  async #copy(
    group: RowGroup,
    times: TimeRange | undefined,
    { isEmpty = false, sum }: { isEmpty?: boolean; sum?: RowSum },
  ): Promise<number> {
    let written = 0;
    for (let after: RowKey | undefined; ; ) {
      const { rows, isLast } = await this.#readChunk(group, { times, after });
      const last = rows.at(-1);
      if (last === undefined) {
        if (isEmpty) return written;
        return written + (await removeRange(this.#target, group, this.#projectId, { times, after }, 'unreferenced'));
      }
      const upTo = isLast ? undefined : valuesOf(last, group.order);
      written += await this.#replace(group, { times, after, upTo }, rows, { isEmpty, sum });
      if (upTo === undefined) return written;
      after = upTo;
    }
  }

  /** Reads the next rows of the source: as many as fit in a chunk with their dependents and contents, at least one. */
  #readChunk(group: RowGroup, range: RowRange): Promise<{ rows: Row[]; isLast: boolean }> {
    const { rowsMax, bytesMax } = this.#limits;
    return this.#source.read(async (queries) => {
      const weighed = await this.#weigh(queries, group, range, rowsMax);
      let bytes = 0;
      let count = 0;
      for (const row of weighed) {
        bytes += row.weight;
        if (count > 0 && bytes > bytesMax) break;
        count += 1;
      }
      const last = weighed[count - 1];
      const isLast = count === weighed.length && weighed.length < rowsMax;
      if (last === undefined) return { rows: [], isLast };
      return { rows: await this.#rowsIn(queries, group, { ...range, upTo: valuesOf(last, group.order) }), isLast };
    });
  }

  /** Reads the keys of rows, and the bytes of each row with its dependents and its content as `weight`. */
  async #weigh(
    queries: Queries,
    group: RowGroup,
    range: RowRange,
    rowsMax: number,
  ): Promise<(Row & { weight: number })[]> {
    const { table, order, dependents, content, bytes = '0' } = group;
    const { condition, params } = rangeCondition(group, this.#projectId, range);
    const rows = await queries.query<Row & { weight: number }>(
      `select ${keyColumnsOf(group).join(', ')}, ${lengths(table.large)} + ${bytes} as weight
       from ${table.name} where ${condition} order by ${order.join(', ')} limit ?`,
      [...params, rowsMax],
    );
    const related = [
      ...dependents
        .filter((dependent) => dependent.table.large.length > 0)
        .map((dependent) => ({ ...dependent, large: dependent.table.large })),
      ...(content === undefined
        ? []
        : [{ table: CONTENTS, column: 'key', owner: content, large: ['header', 'settings', 'body'] }]),
    ];
    for (const { table: relatedTable, column, owner, large } of related) {
      const sizes = await queries.query<{ owner: number; weight: number }>(
        `select ${column} as owner, ${lengths(large)} as weight from ${relatedTable.name} where ${column} in (??)`,
        [keysOf(rows, owner)],
      );
      const weights = new Map<SqlValue, number>();
      for (const { owner: key, weight } of sizes) weights.set(key, (weights.get(key) ?? 0) + weight);
      for (const row of rows) {
        row.weight += weights.get(row[owner] ?? null) ?? 0;
        if (owner === content) weights.delete(row[owner] ?? null); // rows may share a content, whose bytes count once
      }
    }
    return rows;
  }

  #rowsIn(queries: Queries, group: RowGroup, range: RowRange): Promise<Row[]> {
    const { condition, params } = rangeCondition(group, this.#projectId, range);
    return queries.query<Row>(
      `select ${group.table.columns.join(', ')} from ${group.table.name} where ${condition} order by ${group.order.join(', ')}`,
      params,
    );
  }

  /** Replaces the target's range with `rows`, their dependents and contents. Returns the number of written rows. */
  async #replace(
    group: RowGroup,
    range: RowRange,
    rows: readonly Row[],
    { isEmpty, sum }: { isEmpty: boolean; sum: RowSum | undefined },
  ): Promise<number> {
    const sourceRows = await this.#source.read((queries) => dependentsOf(queries, group, rows));
    if (sum) addTo(sum, group, rows, sourceRows.dependents);
    if (!isEmpty) {
      const targetRows = await this.#target.read(async (queries) => {
        const found = await this.#rowsIn(queries, group, range);
        return { rows: found, dependents: await dependentRowsOf(queries, group, found) };
      });
      if (sumOf(group, rows, sourceRows.dependents).equals(sumOf(group, targetRows.rows, targetRows.dependents)))
        return 0;
    }
    const contents = await this.#missingContents(sourceRows.contentKeys);
    await this.#target.transaction(async (tx) => {
      const formerKeys = isEmpty ? [] : await this.#removeFrom(tx, group, range, rows);
      await tx.insertMany('contents', CONTENTS.columns, contents);
      for (const { dependent, rows: more } of sourceRows.dependents)
        await insert(tx, dependent.table.name, dependent.table.columns, more);
      await insert(tx, group.table.name, group.table.columns, rows);
      const kept = new Set(sourceRows.contentKeys);
      const dropped = formerKeys.filter((key) => !kept.has(key));
      if (dropped.length > 0) await dropUnreferencedContents(tx, dropped);
    });
    await this.#checkWritten(group, range, { rows, dependents: sourceRows.dependents, contents });
    this.#onChunk({ table: group.table.name, rows: rows.length });
    return rows.length;
  }

  /** Removes the target's rows that are in the range or have a key of `rows`. Returns the keys of their contents. */
  async #removeFrom(tx: Transaction, group: RowGroup, range: RowRange, rows: readonly Row[]): Promise<number[]> {
    const { condition, params } = rangeCondition(group, this.#projectId, range);
    const { name, key } = group.table;
    const formerRows = await tx.query<Row>(
      `select ${keyColumnsOf(group).join(', ')} from ${name} where ${condition}`,
      params,
    );
    const contentKeys = group.content === undefined ? [] : keysOf(formerRows, group.content);
    for (const dependent of group.dependents) {
      const keys = [...new Set([...keysOf(formerRows, dependent.owner), ...keysOf(rows, dependent.owner)])];
      contentKeys.push(...(await removeDependents(tx, dependent, keys)));
    }
    await tx.run(`delete from ${name} where ${condition}`, params);
    // If a message has changed its wait state, or a run has ended, the outdated row in the target is in another range.
    if (key.length === 1) await tx.run(`delete from ${name} where ${key[0]} in (??)`, [keysOf(rows, key[0] ?? '')]);
    return contentKeys;
  }

  /** Reads from the source the contents that the target does not have. */
  async #missingContents(keys: readonly number[]): Promise<SqlValue[][]> {
    if (keys.length === 0) return [];
    const known = await this.#target.read((queries) =>
      queries.query<{ key: number }>('select key from contents where key in (??)', [keys]),
    );
    const found = new Set(known.map(({ key }) => key));
    const missing = keys.filter((key) => !found.has(key));
    return this.#source.read((queries) => contentsOf(queries, missing));
  }

  /** Throws `MoveRefused` when the rows in the target differ from the rows that were written. */
  async #checkWritten(group: RowGroup, range: RowRange, written: WrittenRows): Promise<void> {
    const keys = written.contents.map(([key]) => key as number);
    const [wanted, found] = await this.#target.read(async (queries) => {
      const rows = await this.#rowsIn(queries, group, range);
      const dependents = await dependentRowsOf(queries, group, rows);
      return [
        sumOf(group, written.rows, written.dependents, written.contents),
        sumOf(group, rows, dependents, await contentsOf(queries, keys)),
      ];
    });
    if (!wanted.equals(found)) throw new MoveRefused(`copied wrongly: ${group.table.name}; run the command again`);
  }

  async #both<T>(read: (queries: Queries) => Promise<T>): Promise<[T, T]> {
    return Promise.all([this.#source.read(read), this.#target.read(read)]);
  }
}

const NO_ROWS: Digest = { rows: 0, sum: 0 };

interface DependentRows {
  dependent: DependentTable;
  rows: Row[];
}

interface WrittenRows {
  rows: readonly Row[];
  dependents: readonly DependentRows[];
  contents: readonly SqlValue[][];
}

function isEqual(one: Digest, other: Digest): boolean {
  return one.rows === other.rows && one.sum === other.sum;
}

function lengths(columns: readonly string[]): string {
  return columns.length === 0 ? '0' : columns.map((column) => `coalesce(length(${column}), 0)`).join(' + ');
}

/** The dependents of rows, and the keys of all contents to which the rows and their dependents refer. */
async function dependentsOf(
  queries: Queries,
  group: RowGroup,
  rows: readonly Row[],
): Promise<{ dependents: DependentRows[]; contentKeys: number[] }> {
  const dependents = await dependentRowsOf(queries, group, rows);
  const contentKeys = [
    ...(group.content === undefined ? [] : keysOf(rows, group.content)),
    ...dependents.flatMap(({ dependent: { content }, rows: more }) =>
      content === undefined ? [] : keysOf(more, content),
    ),
  ];
  return { dependents, contentKeys: [...new Set(contentKeys)] };
}

async function dependentRowsOf(
  queries: Queries,
  { dependents }: RowGroup,
  rows: readonly Row[],
): Promise<DependentRows[]> {
  const found: DependentRows[] = [];
  for (const dependent of dependents) {
    const { table, column, owner } = dependent;
    const keys = keysOf(rows, owner);
    if (keys.length === 0) continue;
    const more = await queries.query<Row>(
      `select ${table.columns.join(', ')} from ${table.name} where ${column} in (??) order by ${table.key.join(', ')}`,
      [keys],
    );
    found.push({ dependent, rows: more });
  }
  return found;
}

async function contentsOf(queries: Queries, keys: readonly number[]): Promise<SqlValue[][]> {
  if (keys.length === 0) return [];
  const rows = await queries.query<Row>(
    `select ${CONTENTS.columns.join(', ')} from contents where key in (??) order by key`,
    [keys],
  );
  return rows.map((row) => valuesOf(row, CONTENTS.columns));
}

function insert(tx: Transaction, table: string, columns: readonly string[], rows: readonly Row[]): Promise<void> {
  return tx.insertMany(
    table,
    columns,
    rows.map((row) => valuesOf(row, columns)),
  );
}

function sumOf(
  group: RowGroup,
  rows: readonly Row[],
  dependents: readonly DependentRows[],
  contents: readonly SqlValue[][] = [],
): RowSum {
  const sum = new RowSum();
  addTo(sum, group, rows, dependents);
  for (const row of contents) sum.add(['contents', ...row]);
  return sum;
}

function addTo(sum: RowSum, { table }: RowGroup, rows: readonly Row[], dependents: readonly DependentRows[]): void {
  for (const row of rows) sum.add(valuesOf(row, table.columns));
  for (const { dependent, rows: more } of dependents) {
    for (const row of more) sum.add([dependent.table.name, ...valuesOf(row, dependent.table.columns)]);
  }
}
