/** Recognizes values that the server hides. Pure. */
import { isMasked } from '../../../src/protocol/urls/masked-url.ts';

/** True for a hash and for a URL with a masked password: the real value is unknown, so it cannot be sent again. */
export function isHidden(value: string): boolean {
  return /^REDACTED:[0-9a-f]{64}$/.test(value) || isMasked(value);
}
