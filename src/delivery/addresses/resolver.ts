/** Resolves host names with the system's resolver. Projects share the limit on concurrent lookups fairly. */
import { lookup } from 'node:dns';
import { LeastRecent } from '../../engine/least-recent.ts';
import type { ProjectId } from '../../engine/model.ts';

export interface ResolvedAddress {
  address: string;
  family: number;
}

/** All addresses of a name, in the order to try them. Rejects with a Node error (`ENOTFOUND`, `EAI_AGAIN`, …). */
export type LookUp = (hostname: string) => Promise<ResolvedAddress[]>;

/** A lookup in progress. The object wraps the promise: `started` would otherwise wait for the addresses too. */
interface RunningLookup {
  addresses: Promise<ResolvedAddress[]>;
}

/** Called when the lookup starts. */
type StartListener = (running: RunningLookup) => void;

/** A request for the addresses of a name. */
export interface LookupRequest {
  /** Resolves when the lookup starts, possibly at once; never after `cancel`. */
  started: Promise<RunningLookup>;
  /** Withdraws the request. A running lookup continues. */
  cancel(): void;
}

/**
 * Maximum number of concurrent lookups of names that have not resolved recently, over all workers of the process. Each
 * `getaddrinfo` takes a thread, for up to ten seconds if no server responds. The process has 96 threads (`bin/waypost.js`), so
 * other lookups find a free thread (P9).
 */
const UNKNOWN_MAX = 32;
/** Maximum number of names that are remembered as recently resolved. */
const RESOLVED_MAX = 10_000;

const LOOPBACK: readonly ResolvedAddress[] = [
  { address: '127.0.0.1', family: 4 },
  { address: '::1', family: 6 },
];
/** Names that always mean this machine (RFC 6761 6.3). Most resolvers know only `localhost`. */
const IS_LOOPBACK = /(?:^localhost\.|\.localhost\.?)$/i;

/**
 * Concurrent requests for one name share a lookup, whose result is not cached. Names that resolved recently are looked
 * up at once. Other names wait for a permit. Projects get permits round-robin. A project gets no permit while it has at
 * least as many as are free, so that the next project finds a free one.
 */
export class Resolver {
  readonly #lookUp: LookUp;
  readonly #resolved = new LeastRecent<true>(RESOLVED_MAX);
  readonly #running = new Map<string, RunningLookup>();
  /** Waiting requests by project and name. The first project is the next in the rotation. */
  readonly #queues = new Map<ProjectId, Map<string, Set<StartListener>>>();
  #freePermits: number;
  readonly #permitsOf = new Map<ProjectId, number>();

  /** `unknownMax`: maximum number of concurrent lookups of names that have not resolved recently. */
  constructor(lookUp: LookUp, unknownMax = UNKNOWN_MAX) {
    this.#lookUp = lookUp;
    this.#freePermits = unknownMax;
  }

  request(hostname: string, projectId: ProjectId): LookupRequest {
    const { promise: started, resolve: onStart } = Promise.withResolvers<RunningLookup>();
    const running = this.#running.get(hostname);
    if (IS_LOOPBACK.test(hostname)) onStart({ addresses: Promise.resolve([...LOOPBACK]) });
    else if (running) onStart(running);
    else if (this.#resolved.get(hostname)) onStart(this.#start(hostname));
    else {
      this.#enqueue(hostname, projectId, onStart);
      this.#startNext();
    }
    return { started, cancel: () => this.#cancel(hostname, projectId, onStart) };
  }

  #enqueue(hostname: string, projectId: ProjectId, onStart: StartListener): void {
    const queue = this.#queues.get(projectId) ?? new Map<string, Set<StartListener>>();
    this.#queues.set(projectId, queue.set(hostname, (queue.get(hostname) ?? new Set()).add(onStart)));
  }

  #cancel(hostname: string, projectId: ProjectId, onStart: StartListener): void {
    const listeners = this.#queues.get(projectId)?.get(hostname);
    if (listeners?.delete(onStart) && listeners.size === 0) this.#remove(hostname, projectId);
  }

  /** Removes a name from the queue of a project. */
  #remove(hostname: string, projectId: ProjectId): void {
    const queue = this.#queues.get(projectId);
    queue?.delete(hostname);
    if (queue?.size === 0) this.#queues.delete(projectId);
  }

  #startNext(): void {
    for (const [projectId, queue] of this.#queues) {
      if (this.#freePermits === 0) return;
      const permits = this.#permitsOf.get(projectId) ?? 0;
      const [hostname] = queue.keys();
      if (hostname === undefined || permits >= this.#freePermits) continue;
      // Moves the project to the end of the map, where this loop reaches it again.
      this.#queues.delete(projectId);
      this.#queues.set(projectId, queue);
      this.#addPermits(projectId, 1);
      const free = (): void => {
        this.#addPermits(projectId, -1);
        this.#startNext();
      };
      this.#start(hostname).addresses.then(free, free);
    }
  }

  #addPermits(projectId: ProjectId, count: 1 | -1): void {
    this.#freePermits -= count;
    const permits = (this.#permitsOf.get(projectId) ?? 0) + count;
    if (permits > 0) this.#permitsOf.set(projectId, permits);
    else this.#permitsOf.delete(projectId);
  }

  #start(hostname: string): RunningLookup {
    const running = { addresses: this.#resolve(hostname) };
    running.addresses.catch(() => {}); // requests handle the error, unless they were cancelled
    this.#running.set(hostname, running);
    for (const [projectId, queue] of this.#queues) {
      for (const onStart of queue.get(hostname) ?? []) onStart(running);
      this.#remove(hostname, projectId);
    }
    return running;
  }

  async #resolve(hostname: string): Promise<ResolvedAddress[]> {
    this.#resolved.delete(hostname); // until it resolves again
    try {
      const addresses = await this.#lookUp(hostname);
      this.#resolved.set(hostname, true);
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

/** The resolver of one worker; the workers of a process share its threads. `lookUp` defaults to the system's resolver. */
export function resolverOf(workers: number, lookUp: LookUp = systemLookUp): Resolver {
  return new Resolver(lookUp, Math.max(1, Math.floor(UNKNOWN_MAX / workers)));
}
