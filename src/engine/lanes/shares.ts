/** How many attempts in flight does each line, or each origin, have? */

/** The smallest window of an endpoint. */
export const FEW = 4;

export interface Share {
  /** Attempts, with and without a slot. */
  count: number;
  /** Attempts that have a place among the silent ones instead of a slot. */
  silent: number;
}

/** Shares with few attempts, all of them silent, are kept apart: there may be thousands, and no claim is told of them. */
export class Shares<Name extends string, S extends Share> {
  readonly #busy = new Map<Name, S>();
  readonly #quiet = new Map<Name, S>();

  /** All others. */
  get busy(): ReadonlyMap<Name, S> {
    return this.#busy;
  }

  get quiet(): ReadonlyMap<Name, S> {
    return this.#quiet;
  }

  find(name: Name): S | undefined {
    return this.#busy.get(name) ?? this.#quiet.get(name);
  }

  /** Call it after each change of a share. A share without attempts is forgotten. */
  keep(name: Name, share: S, isHeavy = false): void {
    const isQuiet = share.silent === share.count && share.count < FEW && !isHeavy;
    if (isQuiet) this.#busy.delete(name);
    else this.#quiet.delete(name);
    if (share.count === 0) this.#quiet.delete(name);
    else (isQuiet ? this.#quiet : this.#busy).set(name, share);
  }
}
