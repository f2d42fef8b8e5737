/** Which values does the server hide? Pure. */
import { isMasked } from '../../../src/protocol/urls/shown-url.ts';

/** True for a hash and for a URL with a masked password: the value itself is not known, so it cannot be sent again. */
export function isHidden(value: string): boolean {
  return /^REDACTED:[0-9a-f]{64}$/.test(value) || isMasked(value);
}
