/** A deterministic random number generator: equal seeds give equal values on every machine. */
import type { Randomness } from '../../src/engine/ports.ts';

export class SeededRandom implements Randomness {
  #a: number;
  #b: number;
  #c: number;
  #counter = 1;

  constructor(seed: number) {
    this.#a = seed | 0;
    this.#b = Math.floor(seed / 0x1_0000_0000) | 0;
    this.#c = 0x9e37_79b9;
    // Similar seeds give unrelated values only after some rounds.
    for (let round = 0; round < 15; round += 1) this.uint32();
  }

  /** A number from 0 to 2^32 - 1. Chris Doty-Humphrey's sfc32 is small, fast, and passes the usual test batteries. */
  uint32(): number {
    const sum = (this.#a + this.#b + this.#counter) | 0;
    this.#counter = (this.#counter + 1) | 0;
    this.#a = this.#b ^ (this.#b >>> 9);
    this.#b = (this.#c + (this.#c << 3)) | 0;
    this.#c = ((this.#c << 21) | (this.#c >>> 11)) + sum;
    this.#c |= 0;
    return sum >>> 0;
  }

  /** A number from 0 up to, but not including, 1. */
  fraction(): number {
    return this.uint32() / 0x1_0000_0000;
  }

  /** A whole number from `min` to `max`, both included. */
  int(min: number, max: number): number {
    return min + Math.floor(this.fraction() * (max - min + 1));
  }

  /** True in `probability` of the cases. */
  chance(probability: number): boolean {
    return this.fraction() < probability;
  }

  choose<T>(items: readonly T[]): T {
    const index = this.int(0, items.length - 1);
    if (index >= items.length || index < 0) throw new Error('there is nothing to choose from');
    return items[index] as T;
  }

  /** A random key, with a probability proportional to its weight. */
  weighted<K extends string>(weights: Readonly<Record<K, number>>): K {
    const keys = Object.keys(weights) as K[];
    let left = this.fraction() * keys.reduce((sum, key) => sum + weights[key], 0);
    for (const key of keys) {
      left -= weights[key];
      if (left < 0) return key;
    }
    return this.choose(keys);
  }

  bytes(count: number): Uint8Array {
    const bytes = new Uint8Array(count);
    for (let index = 0; index < count; index += 1) bytes[index] = this.uint32() & 0xff;
    return bytes;
  }

  /** Creates an independent generator, so that draws in one component do not change those in another. */
  fork(): SeededRandom {
    return new SeededRandom(this.uint32() * 0x20_0000 + (this.uint32() >>> 11));
  }
}
