/** Parses the names of config headers. */
import { canonicalHeaderName } from '../headers.ts';
import { memo } from '../memo.ts';
import type { Dialect } from './settings.ts';

export type CallbackKind = 'callback' | 'failure-callback';

/** The parts of a config header's name (contract M 4.2, 9.4). */
export interface ConfigName {
  dialect: Dialect;
  /** The message that the option configures: `[]` for the published message, otherwise its callbacks, outermost first. */
  path: readonly CallbackKind[];
  /** Lower-case, without prefix and path: `retries`, `callback`. `forward` for a header to forward. */
  option: string;
  /** For `forward`: the canonical name of the delivered header. */
  forwardedName: string;
  /** The whole name in canonical spelling, for error texts. */
  display: string;
}

const PREFIX_LENGTH = 'upstash-'.length;

/** True when `name` begins with `Upstash-` or `Waypost-` in any letter case. */
export function hasConfigPrefix(name: string): boolean {
  if (name.charCodeAt(PREFIX_LENGTH - 1) !== 0x2d) return false;
  // A quick first check: only names that begin with a u or a w can have a prefix.
  const first = name.charCodeAt(0) | 0x20;
  if (first !== 0x75 && first !== 0x77) return false;
  const prefix = name.slice(0, PREFIX_LENGTH).toLowerCase();
  return prefix === 'upstash-' || prefix === 'waypost-';
}

/** Parses a name that `hasConfigPrefix` accepts. Callbacks in the name are read from left to right. */
export const readConfigName: (name: string) => ConfigName = memo((name) => {
  const lower = name.toLowerCase();
  const path: CallbackKind[] = [];
  let at = PREFIX_LENGTH;
  for (;;) {
    const kind = callbackAt(lower, at);
    if (kind === undefined) break;
    path.push(kind);
    at += kind.length + 1;
  }
  const isForward = lower.startsWith('forward-', at);
  return {
    dialect: lower.startsWith('upstash-') ? 'upstash' : 'waypost',
    path,
    option: isForward ? 'forward' : lower.slice(at),
    forwardedName: isForward ? canonicalHeaderName(name.slice(at + 'forward-'.length)) : '',
    display: canonicalHeaderName(name),
  };
});

/**
 * The callback whose options begin at `at`. If `lower` ends with a callback's name, that name is the option for the
 * callback's URL.
 */
function callbackAt(lower: string, at: number): CallbackKind | undefined {
  if (lower.startsWith('failure-callback-', at)) return 'failure-callback';
  return lower.startsWith('callback-', at) ? 'callback' : undefined;
}
