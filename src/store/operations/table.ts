/** Which columns has a row, in which order, and what does each hold? It is said once; the types and the SQL follow from it. */

/** What a column holds; with `?` it may be null. */
interface Held {
  number: number;
  'number?': number | null;
  text: string;
  'text?': string | null;
  'bytes?': Uint8Array | null;
}

export type Columns = readonly (readonly [name: string, holds: keyof Held])[];

/** The values of a row in the order of its columns, as they are written. */
export type ValuesOf<Of extends Columns> = { -readonly [Place in keyof Of]: Held[Of[Place][1]] };

/** A row as it is read. */
export type RowOf<Of extends Columns> = { [Column in Of[number] as Column[0]]: Held[Column[1]] };

/** The index of each column in `ValuesOf`. */
type PlacesOf<Of extends Columns> = {
  [Place in Extract<keyof Of, `${number}`> as Of[Place][0]]: Place extends `${infer At extends number}` ? At : never;
};

export function namesOf<const Of extends Columns>(columns: Of): Of[number][0][] {
  return columns.map(([name]) => name);
}

export function placesOf<const Of extends Columns>(columns: Of): PlacesOf<Of> {
  return Object.fromEntries(columns.map(([name], index) => [name, index])) as PlacesOf<Of>;
}

/** The select list of columns of the table that a statement calls `alias`. */
export function fieldsOf(alias: string, names: readonly string[]): string {
  return names.map((name) => `${alias}.${name}`).join(', ');
}
