/**
 * Checks a destination URL when a message is published (contract M 5.2).
 *
 * This check informs the publisher early. It is not the security boundary: a name may resolve differently later, so the
 * connection of each attempt is checked again. The reasons are shown after `invalid destination url: `.
 */

import { withTimeLimit } from '../../engine/loops/time-limit.ts';
import type { Millis, ProjectId } from '../../engine/model.ts';
import type { Machine } from '../../engine/ports.ts';
import { withArticle } from '../outcome.ts';
import {
  type AddressClass,
  type AddressGuard,
  ALLOW_SETTING,
  addressClassOf,
  literalAddress,
} from './address-guard.ts';
import type { ResolvedAddress, Resolver } from './resolver.ts';

export type DestinationVerdict =
  | { kind: 'ok' }
  /** `remedy` names the setting that would allow the destination. */
  | { kind: 'blocked'; reason: string; remedy: string }
  /** A setting decides whether the publish is rejected. */
  | { kind: 'unresolvable'; reason: string };

const OK: DestinationVerdict = { kind: 'ok' };

/** Checks a host that is an address literal. The verdict on a host name is always `ok`. */
export function checkDestination(url: URL, guard: AddressGuard): DestinationVerdict {
  const literal = literalAddress(url.hostname);
  if (literal === undefined) return OK;
  const refused = guard.blockedClass(literal, literal);
  return refused === undefined ? OK : blockedAt(refused, literal);
}

/** Maximum wait for the start of the lookup. After this time, the name is not checked. */
const START_LIMIT_MS = 5_000;
/** Maximum duration of the lookup. */
const LOOKUP_LIMIT_MS = 5_000;

/** Limits of the cache of valid names: the number of names, and the time after which a name is resolved again. */
const CACHE_LIMITS = { namesMax: 10_000, ms: 60_000 };

/**
 * Checks any host: an address literal, or a name by its addresses. Valid names are cached, so that not every publish
 * resolves them. If the lookup does not start in time, the verdict is `ok` and is not cached.
 */
export class DestinationCheck {
  readonly #guard: AddressGuard;
  readonly #resolver: Resolver;
  readonly #clock: Pick<Machine, 'startTimer'>;
  readonly #cacheLimits: typeof CACHE_LIMITS;
  /** The time at which each name was found valid, oldest first. */
  readonly #validSinceMs = new Map<string, Millis>();

  constructor(
    guard: AddressGuard,
    resolver: Resolver,
    clock: Pick<Machine, 'startTimer'>,
    cacheLimits: typeof CACHE_LIMITS = CACHE_LIMITS,
  ) {
    this.#guard = guard;
    this.#resolver = resolver;
    this.#clock = clock;
    this.#cacheLimits = cacheLimits;
  }

  /** Returns the verdict synchronously for literals and cached names. Never rejects. */
  check(url: URL, projectId: ProjectId, nowMs: Millis): DestinationVerdict | Promise<DestinationVerdict> {
    const guard = this.#guard;
    if (guard.policy.kind === 'all') return OK;
    if (literalAddress(url.hostname) !== undefined) return checkDestination(url, guard);
    const validSinceMs = this.#validSinceMs.get(url.hostname);
    // A clock that was set back must not extend the validity of a name.
    if (validSinceMs !== undefined && nowMs >= validSinceMs && nowMs - validSinceMs < this.#cacheLimits.ms) return OK;
    return this.#resolve(url.hostname, projectId, nowMs);
  }

  async #resolve(hostname: string, projectId: ProjectId, nowMs: Millis): Promise<DestinationVerdict> {
    const clock = this.#clock;
    const request = this.#resolver.request(hostname, projectId);
    const running = await withTimeLimit(clock, START_LIMIT_MS, request.started);
    request.cancel();
    if (running === undefined) return OK; // the resolver is busy, so the name is unknown
    let addresses: ResolvedAddress[] | undefined;
    try {
      addresses = await withTimeLimit(clock, LOOKUP_LIMIT_MS, running.addresses);
    } catch (error) {
      // Expected: the name does not exist, or its servers do not respond.
      return unresolvable(hostname, error);
    }
    if (addresses === undefined)
      return { kind: 'unresolvable', reason: `unable to resolve host: lookup ${hostname}: no response in time` };
    if (addresses.length === 0) return unresolvable(hostname, undefined);
    for (const { address } of addresses) {
      const refused = this.#guard.blockedClass(address, hostname);
      if (refused !== undefined) return blockedAt(refused, address, hostname);
    }
    this.#cache(hostname, nowMs);
    return OK;
  }

  #cache(hostname: string, nowMs: Millis): void {
    this.#validSinceMs.delete(hostname);
    this.#validSinceMs.set(hostname, nowMs);
    if (this.#validSinceMs.size <= this.#cacheLimits.namesMax) return;
    const [oldest] = this.#validSinceMs.keys();
    if (oldest !== undefined) this.#validSinceMs.delete(oldest);
  }
}

/** The verdict with a reason in the wording of the hosted service: `endpoint resolves to a loopback address: ::1`. */
function blockedAt(refused: AddressClass, address: string, hostname?: string): DestinationVerdict {
  const text = `endpoint resolves to ${withArticle(refused)} address`;
  // Publishers must not learn the addresses behind internal names. Loopback addresses and literals are not secret.
  const mayShow = hostname === undefined || addressClassOf(address) === 'loopback';
  const isListable = refused !== 'metadata' && refused !== 'link-local';
  const remedy = isListable
    ? `allow it with ${ALLOW_SETTING}=${hostname ?? address}`
    : `only ${ALLOW_SETTING}=all would allow it`;
  return { kind: 'blocked', reason: mayShow ? `${text}: ${address}` : text, remedy };
}

function unresolvable(hostname: string, error: unknown): DestinationVerdict {
  const code = error instanceof Error && 'code' in error ? error.code : 'ENOTFOUND';
  const detail = code === 'ENOTFOUND' ? 'no such host' : String(code);
  return { kind: 'unresolvable', reason: `unable to resolve host: lookup ${hostname}: ${detail}` };
}
