/** Which attempts does an abort end? */

export interface Interruptible {
  interrupt(): void;
  /** Where its group has it. Set by the group. */
  place: number;
}

/**
 * Attempts by the signal that they were given. Thousands of attempts share one signal, and to add or remove a listener an
 * `AbortSignal` walks the list of all others. So each signal gets a single listener for all its attempts.
 *
 * They are in an array, not in a Set. A Set in which much comes and goes makes a new table now and then, and the old one still points to the new one
 * and to what it had. Once one of these tables is in the old generation of the heap, all that follow are kept with it, and with them every message, until
 * the whole heap is collected.
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
    member.place = this.#members.length;
    this.#members.push(member);
  }

  /** The last one takes its place. False: it is not here. */
  remove(member: Interruptible): boolean {
    const { place } = member;
    if (this.#members[place] !== member) return false;
    const last = this.#members.pop();
    if (last !== undefined && last !== member) {
      this.#members[place] = last;
      last.place = place;
    }
    return true;
  }
}
