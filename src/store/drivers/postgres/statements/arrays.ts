/**
 * Encodes many rows as a few parameters of PostgreSQL: each column is one array in the binary format. So no value is
 * escaped or parsed, bodies are sent unchanged, and one prepared statement serves any number of rows.
 */
import type { SqlValue } from '../../../driver.ts';
import { asBuffer, escapeText } from './values.ts';

/** The column types of the store. Smaller integers are sent as `int8` and cast by the assignment. */
export type ColumnType = 'int8' | 'text' | 'bytea';

const ELEMENT_OID: Record<ColumnType, number> = { int8: 20, text: 25, bytea: 17 };

/** The header contains the number of dimensions, null flag, element type, and length and lower bound of the dimension. */
const HEADER_BYTES = 20;
const NULL_LENGTH = -1;
const HIGH_UNIT = 2 ** 32;

/** Column `index` of `rows` as a binary array. */
export function columnArray(rows: readonly (readonly SqlValue[])[], index: number, type: ColumnType): Buffer {
  const elements: (string | number | Buffer | null)[] = new Array(rows.length);
  let bytes = HEADER_BYTES;
  for (const [at, row] of rows.entries()) {
    const value = toElement(row[index] ?? null, type);
    elements[at] = value;
    bytes += 4 + lengthOf(value);
  }
  const buffer = Buffer.allocUnsafe(bytes);
  buffer.writeInt32BE(1, 0);
  buffer.writeInt32BE(1, 4);
  buffer.writeInt32BE(ELEMENT_OID[type], 8);
  buffer.writeInt32BE(rows.length, 12);
  buffer.writeInt32BE(1, 16);
  let offset = HEADER_BYTES;
  for (const value of elements) offset = writeElement(buffer, offset, value);
  return buffer;
}

function toElement(value: SqlValue, type: ColumnType): string | number | Buffer | null {
  if (value === null) return null;
  if (type === 'int8' && typeof value === 'number' && Number.isSafeInteger(value)) return value;
  if (type === 'text' && typeof value === 'string') return escapeText(value);
  if (type === 'bytea' && value instanceof Uint8Array) return asBuffer(value);
  throw new TypeError(`a column of type ${type} was given a ${typeof value}`);
}

function lengthOf(value: string | number | Buffer | null): number {
  if (value === null) return 0;
  if (typeof value === 'number') return 8;
  return typeof value === 'string' ? Buffer.byteLength(value) : value.length;
}

function writeElement(buffer: Buffer, offset: number, value: string | number | Buffer | null): number {
  const start = offset + 4;
  if (value === null) {
    buffer.writeInt32BE(NULL_LENGTH, offset);
    return start;
  }
  if (typeof value === 'number') {
    buffer.writeInt32BE(8, offset);
    buffer.writeInt32BE(Math.floor(value / HIGH_UNIT), start);
    buffer.writeUInt32BE(value >= 0 ? value % HIGH_UNIT : (HIGH_UNIT + (value % HIGH_UNIT)) % HIGH_UNIT, start + 4);
    return start + 8;
  }
  const length = typeof value === 'string' ? buffer.write(value, start) : value.copy(buffer, start);
  buffer.writeInt32BE(length, offset);
  return start + length;
}
