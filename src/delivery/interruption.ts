/** Which attempts does an abort end? */

export interface Interruptible {
  interrupt(): void;
}

/**
 * Attempts by the signal that they were given. Thousands of attempts share one signal, and to add or remove a listener an
 * `AbortSignal` walks the list of all others. So each signal gets a single listener for all its attempts.
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
    group.members.add(member);
  }

  remove(signal: AbortSignal, member: Interruptible): void {
    const group = this.#groups.get(signal);
    if (group === undefined || !group.members.delete(member) || group.members.size > 0) return;
    this.#groups.delete(signal);
    signal.removeEventListener('abort', group.interruptAll);
  }

  interruptAll(): void {
    for (const group of [...this.#groups.values()]) group.interruptAll();
  }
}

class Group {
  readonly members = new Set<Interruptible>();
  readonly interruptAll = (): void => {
    for (const member of [...this.members]) member.interrupt();
  };
}
