/**
 * Builds and caches statements with a fixed text that insert or update any number of rows. Every batch uses the same few
 * tables and columns.
 */
import type { Queries } from '../../../driver.ts';
import type { ColumnType } from './arrays.ts';

/** One statement for any number of rows. Its parameters are arrays of these types, one per column. */
export interface BulkStatement {
  text: string;
  types: readonly ColumnType[];
}

/** The types of one table's columns by name. */
type ColumnTypes = ReadonlyMap<string, ColumnType>;

export class BulkStatements {
  readonly #statements = new Map<string, BulkStatement>();
  readonly #typesByTable = new Map<string, ColumnTypes>();

  /**
   * `queries` must belong to the calling transaction, which may have created the table itself. `condition` must always be
   * true (`Session.insertCondition`).
   */
  async insert(
    table: string,
    columns: readonly string[],
    queries: Queries,
    condition?: string,
  ): Promise<BulkStatement> {
    const name = `insert ${table} ${columns} ${condition}`;
    return (
      this.#statements.get(name) ??
      this.#keep(name, insertInto(table, columns, await this.#typesOf(table, columns, queries), condition))
    );
  }

  /** Updates the rows whose `keyColumn` is the first value of each row. */
  async update(table: string, keyColumn: string, columns: readonly string[], queries: Queries): Promise<BulkStatement> {
    const all = [keyColumn, ...columns];
    const name = `update ${table} ${all}`;
    return (
      this.#statements.get(name) ?? this.#keep(name, updateOf(table, all, await this.#typesOf(table, all, queries)))
    );
  }

  #keep(name: string, statement: BulkStatement): BulkStatement {
    this.#statements.set(name, statement);
    return statement;
  }

  async #typesOf(table: string, columns: readonly string[], queries: Queries): Promise<ColumnType[]> {
    let types = this.#typesByTable.get(table);
    if (!types) {
      types = await readTypes(table, queries);
      this.#typesByTable.set(table, types);
    }
    return columns.map((column) => typeOf(types, table, column));
  }
}

function insertInto(
  table: string,
  columns: readonly string[],
  types: readonly ColumnType[],
  condition?: string,
): BulkStatement {
  const where = condition === undefined ? '' : ` where ${condition}`;
  return {
    text: `insert into ${table} (${columns.join(', ')}) select * from unnest(${arraysOf(types)})${where}`,
    types,
  };
}

function updateOf(table: string, all: readonly string[], types: readonly ColumnType[]): BulkStatement {
  const [keyColumn, ...columns] = all;
  const names = all.map((_, index) => `c${index}`).join(', ');
  const values = columns.map((column, index) => `${column} = v.c${index + 1}`).join(', ');
  // Looks each row up by its key. With a plain `=`, the planner may assume that the table is empty, start with the table,
  // and compare each of the table's rows with each given row.
  const text = `update ${table} set ${values} from unnest(${arraysOf(types)}) as v(${names})
      where ${table}.${keyColumn} = any(array[v.c0])`;
  return { text, types };
}

function arraysOf(types: readonly ColumnType[]): string {
  return types.map((type, index) => `$${index + 1}::${type}[]`).join(', ');
}

/** Reads one table only: a query for a whole schema would search all schemas, and there may be a thousand. */
async function readTypes(table: string, queries: Queries): Promise<ColumnTypes> {
  const rows = await queries.query<{ name: string; type: string }>(
    `select attname as name, format_type(atttypid, null) as type from pg_attribute
     where attrelid = to_regclass(?) and attnum > 0 and not attisdropped`,
    [table],
  );
  const types = new Map<string, ColumnType>();
  for (const row of rows) {
    const type = columnTypeOf(row.type);
    if (type !== undefined) types.set(row.name, type);
  }
  return types;
}

/** Returns undefined for a type that the store does not use. */
function columnTypeOf(name: string): ColumnType | undefined {
  if (name === 'bytea' || name === 'text') return name;
  return name === 'bigint' || name === 'integer' || name === 'smallint' ? 'int8' : undefined;
}

function typeOf(types: ColumnTypes, table: string, column: string): ColumnType {
  const type = types.get(column);
  if (type === undefined)
    throw new Error(`the database has no column ${table}.${column} of a type that the store uses`);
  return type;
}
