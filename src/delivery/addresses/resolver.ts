/** How does a host name become addresses, and who waits for whom? As the system resolves it, projects by turns. */
import { lookup } from 'node:dns';
import { LeastRecent } from '../../engine/least-recent.ts';
import type { ProjectId } from '../../engine/model.ts';

export interface ResolvedAddress {
  address: string;
  family: number;
}

/** All addresses of a name, in the order to try. Rejects with a Node error (`ENOTFOUND`, `EAI_AGAIN`, …). */
export type LookUp = (hostname: string) => Promise<ResolvedAddress[]>;

/** A look-up that has begun. In an object, since a promise that resolves to a promise would wait for that too. */
interface Begun {
  answer: Promise<ResolvedAddress[]>;
}

/** Told when the look-up begins. */
type Asker = (begun: Begun) => void;

/** What somebody who asks for a name is given. */
export interface Asked {
  /** Resolves when the look-up begins, perhaps at once; never after `leave`. */
  begun: Promise<Begun>;
  /** Nobody waits for it any more: a look-up that has not begun does not begin for this. */
  leave(): void;
}

/**
 * Look-ups at a time of names that have not resolved lately, of all workers of the process. `getaddrinfo` takes a thread of the
 * process for each, for up to ten seconds where no server answers, and has 96 of them (`bin/waypost.js`): others find one (P9).
 */
const UNKNOWN_MAX = 32;
/** Names that are remembered to have resolved. */
const KNOWN_MAX = 10_000;

/**
 * A name that is asked for while it is being looked up is not looked up again: all get that answer. Nothing else is remembered of
 * it. Names that have resolved lately wait for none. The others wait for a place. Projects take turns, and one that has as many
 * places as are left gets no more, so that there is one for the next project that asks.
 */
const LOOPBACK: readonly ResolvedAddress[] = [
  { address: '127.0.0.1', family: 4 },
  { address: '::1', family: 6 },
];
/** Names that mean this machine wherever they are asked for (RFC 6761 6.3); few resolvers know more than `localhost`. */
const IS_LOOPBACK = /(?:^localhost\.|\.localhost\.?)$/i;

export class Resolver {
  readonly #lookUp: LookUp;
  readonly #known = new LeastRecent<true>(KNOWN_MAX);
  readonly #running = new Map<string, Begun>();
  /** Those who wait, by project and name. It is the turn of the first project. */
  readonly #lines = new Map<ProjectId, Map<string, Set<Asker>>>();
  #placesLeft: number;
  readonly #placesOf = new Map<ProjectId, number>();

  /** `unknownMax`: names looked up at a time that have not resolved lately. */
  constructor(lookUp: LookUp, unknownMax = UNKNOWN_MAX) {
    this.#lookUp = lookUp;
    this.#placesLeft = unknownMax;
  }

  ask(hostname: string, projectId: ProjectId): Asked {
    const { promise: begun, resolve: asker } = Promise.withResolvers<Begun>();
    const running = this.#running.get(hostname);
    if (IS_LOOPBACK.test(hostname)) asker({ answer: Promise.resolve([...LOOPBACK]) });
    else if (running) asker(running);
    else if (this.#known.get(hostname)) asker(this.#begin(hostname));
    else {
      this.#wait(hostname, projectId, asker);
      this.#beginNext();
    }
    return { begun, leave: () => this.#leave(hostname, projectId, asker) };
  }

  #wait(hostname: string, projectId: ProjectId, asker: Asker): void {
    const line = this.#lines.get(projectId) ?? new Map<string, Set<Asker>>();
    this.#lines.set(projectId, line.set(hostname, (line.get(hostname) ?? new Set()).add(asker)));
  }

  #leave(hostname: string, projectId: ProjectId, asker: Asker): void {
    const askers = this.#lines.get(projectId)?.get(hostname);
    if (askers?.delete(asker) && askers.size === 0) this.#remove(hostname, projectId);
  }

  /** Removes a name from the line of a project. */
  #remove(hostname: string, projectId: ProjectId): void {
    const line = this.#lines.get(projectId);
    line?.delete(hostname);
    if (line?.size === 0) this.#lines.delete(projectId);
  }

  #beginNext(): void {
    for (const [projectId, line] of this.#lines) {
      if (this.#placesLeft === 0) return;
      const places = this.#placesOf.get(projectId) ?? 0;
      const [hostname] = line.keys();
      if (hostname === undefined || places >= this.#placesLeft) continue;
      // Moved to the end of the map, where this loop reaches it again.
      this.#lines.delete(projectId);
      this.#lines.set(projectId, line);
      this.#takePlace(projectId, 1);
      const free = (): void => {
        this.#takePlace(projectId, -1);
        this.#beginNext();
      };
      this.#begin(hostname).answer.then(free, free);
    }
  }

  #takePlace(projectId: ProjectId, count: 1 | -1): void {
    this.#placesLeft -= count;
    const places = (this.#placesOf.get(projectId) ?? 0) + count;
    if (places > 0) this.#placesOf.set(projectId, places);
    else this.#placesOf.delete(projectId);
  }

  #begin(hostname: string): Begun {
    const begun = { answer: this.#resolve(hostname) };
    begun.answer.catch(() => {}); // those who asked hear of it, unless they have left
    this.#running.set(hostname, begun);
    for (const [projectId, line] of this.#lines) {
      for (const asker of line.get(hostname) ?? []) asker(begun);
      this.#remove(hostname, projectId);
    }
    return begun;
  }

  async #resolve(hostname: string): Promise<ResolvedAddress[]> {
    this.#known.delete(hostname); // until it has resolved again
    try {
      const addresses = await this.#lookUp(hostname);
      this.#known.set(hostname, true);
      return addresses;
    } finally {
      this.#running.delete(hostname);
    }
  }
}

/** As the machine does it, hosts file included: containers and private zones work as people expect. */
const systemLookUp: LookUp = (hostname) =>
  new Promise((resolve, reject) => {
    lookup(hostname, { all: true }, (error, addresses) => (error ? reject(error) : resolve(addresses)));
  });

/** The resolver of one of the workers that share the threads of a process. `lookUp`: default: the machine's. */
export function resolverOf(workers: number, lookUp: LookUp = systemLookUp): Resolver {
  return new Resolver(lookUp, Math.max(1, Math.floor(UNKNOWN_MAX / workers)));
}
