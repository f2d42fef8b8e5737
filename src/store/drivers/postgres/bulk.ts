/**
 * How are many rows inserted or changed by one statement with a fixed text? Each statement is built once, because the
 * same few tables and columns come with every batch.
 */
import type { Queries } from '../../driver.ts';
import type { ColumnType } from './arrays.ts';

/** One statement for any number of rows, whose parameters are arrays of these types, one a column. */
export interface BulkStatement {
  text: string;
  types: readonly ColumnType[];
}

type ColumnTypes = ReadonlyMap<string, ColumnType>;

export class BulkStatements {
  readonly #known = new Map<string, BulkStatement>();
  #columnTypes: ColumnTypes = new Map();

  /**
   * `queries` are those of the transaction that asks, which may have made the table itself. `condition` is one that always
   * holds.
   */
  async insert(
    table: string,
    columns: readonly string[],
    queries: Queries,
    condition?: string,
  ): Promise<BulkStatement> {
    const name = `insert ${table} ${columns} ${condition}`;
    return (
      this.#known.get(name) ??
      this.#keep(name, insertInto(table, columns, await this.#typesOf(table, columns, queries), condition))
    );
  }

  /** Updates the rows whose `keyColumn` is the first value of each row. */
  async update(table: string, keyColumn: string, columns: readonly string[], queries: Queries): Promise<BulkStatement> {
    const all = [keyColumn, ...columns];
    const name = `update ${table} ${all}`;
    return this.#known.get(name) ?? this.#keep(name, updateOf(table, all, await this.#typesOf(table, all, queries)));
  }

  #keep(name: string, statement: BulkStatement): BulkStatement {
    this.#known.set(name, statement);
    return statement;
  }

  /** If a column is not known yet, all types are read again: migrations add columns. */
  async #typesOf(table: string, columns: readonly string[], queries: Queries): Promise<ColumnType[]> {
    const isKnown = columns.every((column) => this.#columnTypes.has(`${table}.${column}`));
    if (!isKnown) this.#columnTypes = await readTypes(queries);
    return columns.map((column) => typeOf(this.#columnTypes, table, column));
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
  // Each row is looked up by its key. With a plain `=` the planner may begin with the table, which it takes for an empty
  // one, and compare each row of that with each one here.
  const text = `update ${table} set ${values} from unnest(${arraysOf(types)}) as v(${names})
      where ${table}.${keyColumn} = any(array[v.c0])`;
  return { text, types };
}

function arraysOf(types: readonly ColumnType[]): string {
  return types.map((type, index) => `$${index + 1}::${type}[]`).join(', ');
}

/** As `table.column`. */
async function readTypes(queries: Queries): Promise<ColumnTypes> {
  const rows = await queries.query<{ table_name: string; column_name: string; data_type: string }>(
    'select table_name, column_name, data_type from information_schema.columns where table_schema = current_schema()',
  );
  const types = new Map<string, ColumnType>();
  for (const { table_name, column_name, data_type } of rows) {
    const type = typeNamed(data_type);
    if (type !== undefined) types.set(`${table_name}.${column_name}`, type);
  }
  return types;
}

/** Undefined: a type that the store does not use; other programs may have tables in the same schema. */
function typeNamed(name: string): ColumnType | undefined {
  if (name === 'bytea' || name === 'text') return name;
  return name === 'bigint' || name === 'integer' || name === 'smallint' ? 'int8' : undefined;
}

function typeOf(types: ColumnTypes, table: string, column: string): ColumnType {
  const type = types.get(`${table}.${column}`);
  if (type === undefined) throw new Error(`the database has no column ${table}.${column} of a type that the store has`);
  return type;
}
