/** Resolves host names with the system's resolver, with a concurrency limit that projects share fairly. */
import { lookup } from 'node:dns';
import { LeastRecent } from '../../engine/least-recent.ts';
import type { ProjectId } from '../../engine/model.ts';

export interface ResolvedAddress {
  address: string;
  family: number;
}

/** All addresses of a name, in the order to try them. Rejects with a Node error (`ENOTFOUND`, `EAI_AGAIN`, …). */
export type LookUp = (hostname: string) => Promise<ResolvedAddress[]>;

/** A lookup in progress. It wraps its promise, since a promise that resolves to a promise would wait for that one too. */
interface Begun {
  answer: Promise<ResolvedAddress[]>;
}

/** Called when the lookup starts. */
type Asker = (begun: Begun) => void;

/** A request for the addresses of a name. */
export interface Asked {
  /** Resolves when the lookup starts, perhaps at once; never after `leave`. */
  begun: Promise<Begun>;
  /** Cancels the request: a lookup that has not started is not started for it. */
  leave(): void;
}

/**
 * Maximum number of concurrent lookups of names that have not resolved recently, over all workers of the process. `getaddrinfo` takes a
 * thread for each, for up to ten seconds if no server responds. The process has 96 threads for it (`bin/waypost.js`), so other lookups find a free one (P9).
 */
const UNKNOWN_MAX = 32;
/** Maximum number of names that are remembered as recently resolved. */
const KNOWN_MAX = 10_000;

const LOOPBACK: readonly ResolvedAddress[] = [
  { address: '127.0.0.1', family: 4 },
  { address: '::1', family: 6 },
];
/** Names that always mean this machine (RFC 6761 6.3); few resolvers know more than `localhost`. */
const IS_LOOPBACK = /(?:^localhost\.|\.localhost\.?)$/i;

/**
 * Concurrent requests for one name share a lookup; its result is not cached. Names that resolved recently are looked up at once.
 * Other names wait for a permit. Projects get permits round-robin. A project that has as many permits as are free gets no more, so
 * that the next project finds one.
 */
export class Resolver {
  readonly #lookUp: LookUp;
  readonly #known = new LeastRecent<true>(KNOWN_MAX);
  readonly #running = new Map<string, Begun>();
  /** Waiting requests by project and name. The first project is the next in the rotation. */
  readonly #lines = new Map<ProjectId, Map<string, Set<Asker>>>();
  #placesLeft: number;
  readonly #placesOf = new Map<ProjectId, number>();

  /** `unknownMax`: maximum number of concurrent lookups of names that have not resolved recently. */
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

  /** Removes a name from the queue of a project. */
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
    begun.answer.catch(() => {}); // requests handle the error, unless they were cancelled
    this.#running.set(hostname, begun);
    for (const [projectId, line] of this.#lines) {
      for (const asker of line.get(hostname) ?? []) asker(begun);
      this.#remove(hostname, projectId);
    }
    return begun;
  }

  async #resolve(hostname: string): Promise<ResolvedAddress[]> {
    this.#known.delete(hostname); // until it resolves again
    try {
      const addresses = await this.#lookUp(hostname);
      this.#known.set(hostname, true);
      return addresses;
    } finally {
      this.#running.delete(hostname);
    }
  }
}

/** The system's resolver, including the hosts file, so that containers and private zones work as expected. */
const systemLookUp: LookUp = (hostname) =>
  new Promise((resolve, reject) => {
    lookup(hostname, { all: true }, (error, addresses) => (error ? reject(error) : resolve(addresses)));
  });

/** The resolver of one worker; the workers of a process share its threads. `lookUp` is the system's by default. */
export function resolverOf(workers: number, lookUp: LookUp = systemLookUp): Resolver {
  return new Resolver(lookUp, Math.max(1, Math.floor(UNKNOWN_MAX / workers)));
}
