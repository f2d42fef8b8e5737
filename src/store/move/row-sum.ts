/** Computes an order-independent checksum of the rows of a table, for comparing two copies. */
import { createHash } from 'node:crypto';
import type { SqlValue } from '../driver.ts';

/** 256 bits in words of 32. */
const WORDS = 8;
/** Digits of the displayed checksum: enough to compare by eye, and too many to be equal by chance. */
const SHOWN_DIGITS = 32;

/**
 * The number and the checksum of rows in any order, because databases sort texts differently. The checksum is the sum of the
 * rows' SHA-256, word by word, so that a row that occurs twice counts twice.
 */
export class RowSum {
  readonly #words = new Uint32Array(WORDS);
  #rows = 0;

  get rows(): number {
    return this.#rows;
  }

  get checksum(): string {
    return [...this.#words]
      .map((word) => word.toString(16).padStart(8, '0'))
      .join('')
      .slice(0, SHOWN_DIGITS);
  }

  add(row: readonly SqlValue[]): void {
    const digest = digestOf(row);
    for (let word = 0; word < WORDS; word += 1) {
      this.#words[word] = (this.#words[word] ?? 0) + digest.readUInt32BE(word * 4);
    }
    this.#rows += 1;
  }

  equals(other: RowSum): boolean {
    return this.#rows === other.#rows && this.#words.every((word, index) => word === other.#words[index]);
  }
}

/** Each value is prefixed with its kind and length, so that two different rows never have the same encoding. */
function digestOf(row: readonly SqlValue[]): Buffer {
  const hash = createHash('sha256');
  for (const value of row) {
    if (value === null) hash.update('-;');
    else if (typeof value === 'number') hash.update(`n${value};`);
    else if (typeof value === 'string') hash.update(`t${Buffer.byteLength(value)};`).update(value);
    else hash.update(`b${value.byteLength};`).update(value);
  }
  return hash.digest();
}
