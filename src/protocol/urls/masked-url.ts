/** Hides passwords in URLs. */

/** Up to the colon after the user name; then the password, up to the last `@` before the path, as `new URL` parses it. */
const WITH_PASSWORD = /^(https?:\/\/[^/?#\\:]*:)[^/?#\\]+@/i;
const WITH_MASK = /^https?:\/\/[^/?#\\:]*:\*\*\*@/i;

/** `url` with `***` instead of its password, if it has one (contract M 5.2.4). Only its endpoint receives the password. */
export function maskPassword(url: string): string {
  return url.includes('@') ? url.replace(WITH_PASSWORD, '$1***@') : url;
}

/** Whether `url` was copied from a view, where `maskPassword` had replaced its password. */
export function isMasked(url: string): boolean {
  return url.includes('@') && WITH_MASK.test(url);
}
