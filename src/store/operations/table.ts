/** Derives row types and SQL from the columns of a table, which are declared once with their order and value types. */

/** The value types of columns; with `?` the column may be null. */
interface ValueTypes {
  number: number;
  'number?': number | null;
  text: string;
  'text?': string | null;
  'bytes?': Uint8Array | null;
}

export type Columns = readonly (readonly [name: string, type: keyof ValueTypes])[];

/** The values of a row in the order of its columns, as they are written. */
export type ValuesOf<Of extends Columns> = { -readonly [Index in keyof Of]: ValueTypes[Of[Index][1]] };

/** A row that was read: its values by column name. */
export type RowOf<Of extends Columns> = { [Column in Of[number] as Column[0]]: ValueTypes[Column[1]] };

/** The index of each column in `ValuesOf`. */
type IndexesOf<Of extends Columns> = {
  [Index in Extract<keyof Of, `${number}`> as Of[Index][0]]: Index extends `${infer At extends number}` ? At : never;
};

export function namesOf<const Of extends Columns>(columns: Of): Of[number][0][] {
  return columns.map(([name]) => name);
}

export function indexesOf<const Of extends Columns>(columns: Of): IndexesOf<Of> {
  return Object.fromEntries(columns.map(([name], index) => [name, index])) as IndexesOf<Of>;
}

/** The select list of columns of the table that a statement calls `alias`. */
export function fieldsOf(alias: string, names: readonly string[]): string {
  return names.map((name) => `${alias}.${name}`).join(', ');
}
