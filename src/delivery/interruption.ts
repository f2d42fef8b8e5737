/** Interrupts all attempts of a signal when the signal aborts. */

export interface Interruptible {
  interrupt(): void;
  /** The index of the attempt in its group. Set by the group. */
  groupIndex: number;
}

/**
 * Groups attempts by their signal. Thousands of attempts share one signal, and an `AbortSignal` walks its whole list of
 * listeners to add or remove a listener. So each signal has a single listener for all its attempts.
 *
 * The attempts are in an array, not a Set. A Set with many changes allocates new tables, and each old table references the
 * next table and its own former elements. Once a table is in the old generation of the heap, it retains all later
 * tables, and every message in these tables, until a full garbage collection.
 */
export class Interruptions {
  readonly #groups = new Map<AbortSignal, Group>();

  add(signal: AbortSignal, member: Interruptible): void {
    let group = this.#groups.get(signal);
    if (group === undefined) {
      group = new Group();
      this.#groups.set(signal, group);
      signal.addEventListener('abort', group.interruptAll, { once: true });
    }
    group.add(member);
  }

  remove(signal: AbortSignal, member: Interruptible): void {
    const group = this.#groups.get(signal);
    if (group === undefined || !group.remove(member) || !group.isEmpty) return;
    this.#groups.delete(signal);
    signal.removeEventListener('abort', group.interruptAll);
  }

  interruptAll(): void {
    for (const group of [...this.#groups.values()]) group.interruptAll();
  }
}

class Group {
  readonly #members: Interruptible[] = [];
  readonly interruptAll = (): void => {
    for (const member of [...this.#members]) member.interrupt();
  };

  get isEmpty(): boolean {
    return this.#members.length === 0;
  }

  add(member: Interruptible): void {
    member.groupIndex = this.#members.length;
    this.#members.push(member);
  }

  /** Moves the last member into the gap. Returns false if the member is not in the group. */
  remove(member: Interruptible): boolean {
    const { groupIndex } = member;
    if (this.#members[groupIndex] !== member) return false;
    const last = this.#members.pop();
    if (last !== undefined && last !== member) {
      this.#members[groupIndex] = last;
      last.groupIndex = groupIndex;
    }
    return true;
  }
}
