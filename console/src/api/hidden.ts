/** Recognizes values that the server hides. */
import { isMasked } from '../../../src/protocol/urls/masked-url.ts';

/** Whether the value is a hash or a URL with a masked password. The real value is unknown, so it cannot be sent again. */
export function isHidden(value: string): boolean {
  return /^REDACTED:[0-9a-f]{64}$/.test(value) || isMasked(value);
}
