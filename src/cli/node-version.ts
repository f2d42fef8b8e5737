/** Warns about versions of Node with known vulnerabilities. */

/**
 * The first version without a vulnerability that an endpoint or a client could exploit. 24.22.1 fixes three more
 * vulnerabilities: in decoding Brotli, in names with a NUL byte, and in certificates of oddly written addresses. None of
 * the three is reachable from outside: Waypost decodes Brotli only from 24.22.1 on, and normalises hosts as in the URL
 * standard (`test/delivery/node-faults.test.ts`).
 */
const SAFE_VERSION = '24.21.0';

/** The warning for the operator about `version` (`24.20.0`); undefined when the version is recent enough. */
export function nodeWarning(version: string): string | undefined {
  if (!isOlder(version, SAFE_VERSION)) return undefined;
  return `Node ${version} has known faults that a hostile endpoint could use: run ${SAFE_VERSION} or newer`;
}

function isOlder(version: string, floor: string): boolean {
  const [have, need] = [version, floor].map((text) => text.split('.').map((part) => Number.parseInt(part, 10)));
  for (const [at, least] of (need ?? []).entries()) {
    const part = have?.[at] ?? 0;
    if (part !== least) return part < least;
  }
  return false;
}
