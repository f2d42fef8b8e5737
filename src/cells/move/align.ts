/**
 * Makes the rows that the target has of a project the same as the source's, in pieces: each is one transaction, in which a
 * row comes with its parts and with the content that it tells of. What is equal already is not read, or not written. So
 * it does not matter how far an earlier try has come, and the same is done while the project is in use, until little
 * differs, and once more when nothing changes any more.
 */
import type { Driver, Queries, SqlValue, Transaction } from '../../store/driver.ts';
import { CHUNK_LIMITS, type ChunkLimits, type RowKey } from '../../store/move/chunks.ts';
import type { CopiedTable } from '../../store/move/copy.ts';
import { MoveRefused } from '../../store/move/progress.ts';
import { RowSum } from '../../store/move/row-sum.ts';
import { dropUnreferencedContents } from '../../store/operations/retention.ts';
import { ownersOf, removePart, removeStretch } from './remove.ts';
import {
  type DependentRows,
  type Digest,
  digestOf,
  digestsOf,
  keysOf,
  type Row,
  type RowGroup,
  type RowRange,
  type TimeRange,
  tableOf,
  timesOf,
  valuesOf,
  within,
} from './row-groups.ts';

interface Ends {
  source: Pick<Driver, 'read'>;
  target: Driver;
  projectId: number;
  limits?: ChunkLimits;
}

type OnPiece = (piece: { table: string; rows: number }) => void;

/** Ranges that differ are divided into so many, until they have few rows. */
const PARTS = 64;
const FEW_ROWS = 4_000;

const CONTENTS = tableOf('contents');

export class Aligner {
  readonly #source: Pick<Driver, 'read'>;
  readonly #target: Driver;
  readonly #projectId: number;
  readonly #limits: ChunkLimits;
  /** Told after each piece that was written. */
  readonly #onPiece: OnPiece;

  constructor({ source, target, projectId, limits = CHUNK_LIMITS }: Ends, onPiece: OnPiece) {
    this.#source = source;
    this.#target = target;
    this.#projectId = projectId;
    this.#limits = limits;
    this.#onPiece = onPiece;
  }

  /** Of a sheet with a digest: answers how many rows were written. `sinceMs`: what is earlier is not looked at. */
  async alignHistory(sheet: RowGroup, sinceMs = 0): Promise<number> {
    const times = await this.#timesOf(sheet);
    if (times === undefined) return 0;
    const range = { ...times, fromMs: Math.max(times.fromMs, sinceMs) };
    if (range.fromMs >= range.toMs) return 0;
    const [ours, theirs] = await this.#both((queries) => digestOf(queries, sheet, this.#projectId, range));
    return this.#alignPart(sheet, range, ours, theirs);
  }

  /** Whether both sides have the same rows, by their digests. */
  async compareHistory(sheet: RowGroup): Promise<CopiedTable & { isEqual: boolean }> {
    const [ours, theirs] = await this.#both((queries) => digestOf(queries, sheet, this.#projectId, undefined));
    return { table: sheet.table.name, rows: ours.rows, checksum: String(ours.sum), isEqual: isSame(ours, theirs) };
  }

  /** Of a sheet without a digest: reads all rows on both sides. */
  async alignPresent(sheet: RowGroup): Promise<CopiedTable> {
    const sum = new RowSum();
    await this.#copy(sheet, undefined, { sum });
    return { table: sheet.table.name, rows: sum.rows, checksum: sum.checksum };
  }

  /** From the first to the last time that either side has. */
  async #timesOf(sheet: RowGroup): Promise<TimeRange | undefined> {
    const found = await this.#both((queries) => timesOf(queries, sheet, this.#projectId));
    const ranges = found.filter((range) => range !== undefined);
    if (ranges.length === 0) return undefined;
    return {
      fromMs: Math.min(...ranges.map(({ fromMs }) => fromMs)),
      toMs: Math.max(...ranges.map(({ toMs }) => toMs)),
    };
  }

  /** Of a range whose digests are known. */
  async #alignPart(sheet: RowGroup, range: TimeRange, ours = NOTHING, theirs = NOTHING): Promise<number> {
    if (isSame(ours, theirs)) return 0;
    const spanMs = range.toMs - range.fromMs;
    const isSmall = ours.rows === 0 || ours.rows + theirs.rows <= FEW_ROWS || spanMs === 1;
    if (isSmall || theirs.rows === 0) return this.#copy(sheet, range, { isEmpty: theirs.rows === 0 });
    const widthMs = Math.ceil(spanMs / PARTS);
    const [ourParts, theirParts] = await this.#both((queries) =>
      digestsOf(queries, sheet, this.#projectId, { range, widthMs }),
    );
    let written = 0;
    for (const part of new Set([...ourParts.keys(), ...theirParts.keys()])) {
      const fromMs = range.fromMs + part * widthMs;
      const piece = { fromMs, toMs: Math.min(fromMs + widthMs, range.toMs) };
      written += await this.#alignPart(sheet, piece, ourParts.get(part), theirParts.get(part));
    }
    return written;
  }

  /** Goes through the rows of both sides; answers how many were written. `isEmpty`: the target has none. */
  async #copy(
    sheet: RowGroup,
    range: TimeRange | undefined,
    { isEmpty = false, sum }: { isEmpty?: boolean; sum?: RowSum },
  ): Promise<number> {
    let written = 0;
    for (let after: RowKey | undefined; ; ) {
      const { rows, isLast } = await this.#readPiece(sheet, { range, after });
      const last = rows.at(-1);
      if (last === undefined) {
        if (isEmpty) return written;
        return written + (await removeStretch(this.#target, sheet, this.#projectId, { range, after }, 'unreferenced'));
      }
      const upTo = isLast ? undefined : valuesOf(last, sheet.order);
      written += await this.#replace(sheet, { range, after, upTo }, rows, { isEmpty, sum });
      if (upTo === undefined) return written;
      after = upTo;
    }
  }

  /** The next rows of the source: as many as may be held in memory together with what belongs to them, and at least one. */
  #readPiece(sheet: RowGroup, stretch: RowRange): Promise<{ rows: Row[]; isLast: boolean }> {
    const { rowsMax, bytesMax } = this.#limits;
    return this.#source.read(async (queries) => {
      const weighed = await this.#weigh(queries, sheet, stretch, rowsMax);
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
      return { rows: await this.#rowsIn(queries, sheet, { ...stretch, upTo: valuesOf(last, sheet.order) }), isLast };
    });
  }

  /** The keys of rows, with the bytes that come with each. */
  async #weigh(
    queries: Queries,
    sheet: RowGroup,
    stretch: RowRange,
    rowsMax: number,
  ): Promise<(Row & { weight: number })[]> {
    const { table, order, parts, content, bytes = '0' } = sheet;
    const { condition, params } = within(sheet, this.#projectId, stretch);
    const rows = await queries.query<Row & { weight: number }>(
      `select ${ownersOf(sheet).join(', ')}, ${lengths(table.large)} + ${bytes} as weight
       from ${table.name} where ${condition} order by ${order.join(', ')} limit ?`,
      [...params, rowsMax],
    );
    const belongings = [
      ...parts.filter((part) => part.table.large.length > 0).map((part) => ({ ...part, large: part.table.large })),
      ...(content === undefined
        ? []
        : [{ table: CONTENTS, column: 'key', owner: content, large: ['header', 'settings', 'body'] }]),
    ];
    for (const { table: of, column, owner, large } of belongings) {
      const sizes = await queries.query<{ owner: number; weight: number }>(
        `select ${column} as owner, ${lengths(large)} as weight from ${of.name} where ${column} in (??)`,
        [keysOf(rows, owner)],
      );
      const weights = new Map<SqlValue, number>();
      for (const { owner: key, weight } of sizes) weights.set(key, (weights.get(key) ?? 0) + weight);
      for (const row of rows) {
        row.weight += weights.get(row[owner] ?? null) ?? 0;
        if (owner === content) weights.delete(row[owner] ?? null); // it comes once
      }
    }
    return rows;
  }

  #rowsIn(queries: Queries, sheet: RowGroup, stretch: RowRange): Promise<Row[]> {
    const { condition, params } = within(sheet, this.#projectId, stretch);
    return queries.query<Row>(
      `select ${sheet.table.columns.join(', ')} from ${sheet.table.name} where ${condition} order by ${sheet.order.join(', ')}`,
      params,
    );
  }

  /** Makes what the target has of the stretch the same as `rows`, and what belongs to them; answers how many were written. */
  async #replace(
    sheet: RowGroup,
    stretch: RowRange,
    rows: readonly Row[],
    { isEmpty, sum }: { isEmpty: boolean; sum: RowSum | undefined },
  ): Promise<number> {
    const ours = await this.#source.read((queries) => belongingsOf(queries, sheet, rows));
    if (sum) addTo(sum, sheet, rows, ours.parts);
    if (!isEmpty) {
      const theirs = await this.#target.read(async (queries) => {
        const found = await this.#rowsIn(queries, sheet, stretch);
        return { rows: found, parts: await partsOf(queries, sheet, found) };
      });
      if (sumOf(sheet, rows, ours.parts).equals(sumOf(sheet, theirs.rows, theirs.parts))) return 0;
    }
    const contents = await this.#missing(ours.contentKeys);
    await this.#target.transaction(async (tx) => {
      const former = isEmpty ? [] : await this.#removeFrom(tx, sheet, stretch, rows);
      await tx.insertMany('contents', CONTENTS.columns, contents);
      for (const { part, rows: more } of ours.parts) await insert(tx, part.table.name, part.table.columns, more);
      await insert(tx, sheet.table.name, sheet.table.columns, rows);
      const kept = new Set(ours.contentKeys);
      const dropped = former.filter((key) => !kept.has(key));
      if (dropped.length > 0) await dropUnreferencedContents(tx, dropped);
    });
    await this.#check(sheet, stretch, { rows, parts: ours.parts, contents });
    this.#onPiece({ table: sheet.table.name, rows: rows.length });
    return rows.length;
  }

  /** Removes the stretch, and those of `rows` that lie elsewhere; answers the keys of the contents that were told of. */
  async #removeFrom(tx: Transaction, sheet: RowGroup, stretch: RowRange, rows: readonly Row[]): Promise<number[]> {
    const { condition, params } = within(sheet, this.#projectId, stretch);
    const { name, key } = sheet.table;
    const former = await tx.query<Row>(`select ${ownersOf(sheet).join(', ')} from ${name} where ${condition}`, params);
    const contentKeys = sheet.content === undefined ? [] : keysOf(former, sheet.content);
    for (const part of sheet.parts) {
      const keys = [...new Set([...keysOf(former, part.owner), ...keysOf(rows, part.owner)])];
      contentKeys.push(...(await removePart(tx, part, keys)));
    }
    await tx.run(`delete from ${name} where ${condition}`, params);
    // A message that waited in another line, a run that has ended meanwhile: its row is in another stretch.
    if (key.length === 1) await tx.run(`delete from ${name} where ${key[0]} in (??)`, [keysOf(rows, key[0] ?? '')]);
    return contentKeys;
  }

  /** Contents that the target has not: the rows of the source. */
  async #missing(keys: readonly number[]): Promise<SqlValue[][]> {
    if (keys.length === 0) return [];
    const known = await this.#target.read((queries) =>
      queries.query<{ key: number }>('select key from contents where key in (??)', [keys]),
    );
    const found = new Set(known.map(({ key }) => key));
    const missing = keys.filter((key) => !found.has(key));
    return this.#source.read((queries) => contentsOf(queries, missing));
  }

  /** Throws `MoveRefused` when the target has something else than what was written. */
  async #check(sheet: RowGroup, stretch: RowRange, written: Written): Promise<void> {
    const keys = written.contents.map(([key]) => key as number);
    const [wanted, found] = await this.#target.read(async (queries) => {
      const rows = await this.#rowsIn(queries, sheet, stretch);
      const parts = await partsOf(queries, sheet, rows);
      return [
        sumOf(sheet, written.rows, written.parts, written.contents),
        sumOf(sheet, rows, parts, await contentsOf(queries, keys)),
      ];
    });
    if (!wanted.equals(found)) throw new MoveRefused(`copied wrongly: ${sheet.table.name}; run the command again`);
  }

  async #both<T>(read: (queries: Queries) => Promise<T>): Promise<[T, T]> {
    return Promise.all([this.#source.read(read), this.#target.read(read)]);
  }
}

const NOTHING: Digest = { rows: 0, sum: 0 };

interface PartRows {
  part: DependentRows;
  rows: Row[];
}

interface Written {
  rows: readonly Row[];
  parts: readonly PartRows[];
  contents: readonly SqlValue[][];
}

function isSame(one: Digest, other: Digest): boolean {
  return one.rows === other.rows && one.sum === other.sum;
}

function lengths(columns: readonly string[]): string {
  return columns.length === 0 ? '0' : columns.map((column) => `coalesce(length(${column}), 0)`).join(' + ');
}

/** The parts of rows, and the keys of all contents that these and the rows tell of. */
async function belongingsOf(
  queries: Queries,
  sheet: RowGroup,
  rows: readonly Row[],
): Promise<{ parts: PartRows[]; contentKeys: number[] }> {
  const parts = await partsOf(queries, sheet, rows);
  const told = [
    ...(sheet.content === undefined ? [] : keysOf(rows, sheet.content)),
    ...parts.flatMap(({ part: { content }, rows: more }) => (content === undefined ? [] : keysOf(more, content))),
  ];
  return { parts, contentKeys: [...new Set(told)] };
}

async function partsOf(queries: Queries, { parts }: RowGroup, rows: readonly Row[]): Promise<PartRows[]> {
  const found: PartRows[] = [];
  for (const part of parts) {
    const { table, column, owner } = part;
    const keys = keysOf(rows, owner);
    if (keys.length === 0) continue;
    const more = await queries.query<Row>(
      `select ${table.columns.join(', ')} from ${table.name} where ${column} in (??) order by ${table.key.join(', ')}`,
      [keys],
    );
    found.push({ part, rows: more });
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
  sheet: RowGroup,
  rows: readonly Row[],
  parts: readonly PartRows[],
  contents: readonly SqlValue[][] = [],
): RowSum {
  const sum = new RowSum();
  addTo(sum, sheet, rows, parts);
  for (const row of contents) sum.add(['contents', ...row]);
  return sum;
}

function addTo(sum: RowSum, { table }: RowGroup, rows: readonly Row[], parts: readonly PartRows[]): void {
  for (const row of rows) sum.add(valuesOf(row, table.columns));
  for (const { part, rows: more } of parts) {
    for (const row of more) sum.add([part.table.name, ...valuesOf(row, part.table.columns)]);
  }
}
