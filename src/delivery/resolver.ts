/** How a host name becomes addresses: as the system resolves it, and never twice at the same time for one name. */
import { lookup } from 'node:dns';
import { LeastRecent } from '../engine/least-recent.ts';

export interface ResolvedAddress {
  address: string;
  family: number;
}

/** All addresses of a name, in the order to try. Rejects with a Node error (`ENOTFOUND`, `EAI_AGAIN`, …). */
export type Resolver = (hostname: string) => Promise<ResolvedAddress[]>;

/**
 * Look-ups at a time of names that have not resolved lately. `getaddrinfo` takes a thread of the process for each, for up to
 * ten seconds where no server answers, and has 32 of them (`bin/waypost.js`): others find one (P9).
 */
const UNKNOWN_MAX = 16;
/** Names that are remembered to have resolved. */
const KNOWN_MAX = 10_000;

/** One who asks for a name that is being resolved gets that answer. Nothing else is remembered of it. */
export function joiningResolver(resolver: Resolver): Resolver {
  const pending = new Map<string, Promise<ResolvedAddress[]>>();
  const fair = fairResolver(resolver);
  return (hostname) => {
    const running = pending.get(hostname);
    if (running !== undefined) return running;
    const answer = fair(hostname).finally(() => pending.delete(hostname));
    pending.set(hostname, answer);
    return answer;
  };
}

/** Names that do not resolve, or only after seconds, wait for each other; those that have resolved before wait for none. */
function fairResolver(resolver: Resolver): Resolver {
  const known = new LeastRecent<true>(KNOWN_MAX);
  const waiting: (() => void)[] = [];
  let unknown = 0;
  const resolve: Resolver = async (hostname) => {
    known.delete(hostname); // until it has resolved again
    const addresses = await resolver(hostname);
    known.set(hostname, true);
    return addresses;
  };
  return async (hostname) => {
    if (known.get(hostname)) return resolve(hostname);
    if (unknown < UNKNOWN_MAX) unknown += 1;
    else await new Promise<void>((begin) => waiting.push(begin)); // takes the place of another one
    try {
      return await resolve(hostname);
    } finally {
      const begin = waiting.shift();
      if (begin) begin();
      else unknown -= 1;
    }
  };
}

/** The resolver of the machine, hosts file included: containers and private zones work as people expect. */
export const systemResolver: Resolver = joiningResolver(
  (hostname) =>
    new Promise((resolve, reject) => {
      lookup(hostname, { all: true }, (error, addresses) => (error ? reject(error) : resolve(addresses)));
    }),
);
