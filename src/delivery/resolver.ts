/** How a host name becomes addresses: as the system resolves it, and never twice at the same time for one name. */
import { lookup } from 'node:dns';

export interface ResolvedAddress {
  address: string;
  family: number;
}

/** All addresses of a name, in the order to try. Rejects with a Node error (`ENOTFOUND`, `EAI_AGAIN`, …). */
export type Resolver = (hostname: string) => Promise<ResolvedAddress[]>;

/** The resolver of the machine, hosts file included: containers and private zones work as people expect. */
export const systemResolver: Resolver = (hostname) =>
  new Promise((resolve, reject) => {
    lookup(hostname, { all: true }, (error, addresses) => (error ? reject(error) : resolve(addresses)));
  });

/**
 * Joins callers that ask for the same name at the same time. `getaddrinfo` runs on four threads of the process:
 * a burst of connections to one slow name must not take them all. Nothing is remembered after the answer.
 */
export function joiningResolver(resolver: Resolver): Resolver {
  const pending = new Map<string, Promise<ResolvedAddress[]>>();
  return (hostname) => {
    const running = pending.get(hostname);
    if (running !== undefined) return running;
    const answer = resolver(hostname).finally(() => pending.delete(hostname));
    pending.set(hostname, answer);
    return answer;
  };
}
