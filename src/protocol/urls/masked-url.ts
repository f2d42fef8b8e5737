/** Hides passwords in URLs. */

/** The text up to the colon after the user name; then the password, up to the last `@` before the path (`new URL`). */
const WITH_PASSWORD = /^(https?:\/\/[^/?#\\:]*:)[^/?#\\]+@/i;
const WITH_MASK = /^https?:\/\/[^/?#\\:]*:\*\*\*@/i;

/** `url` with `***` instead of its password, if there is any (contract M 5.2.4). Only the endpoint gets the password. */
export function maskPassword(url: string): string {
  return url.includes('@') ? url.replace(WITH_PASSWORD, '$1***@') : url;
}

/** Whether `url` was copied from a view, where `maskPassword` had replaced its password. */
export function isMasked(url: string): boolean {
  return url.includes('@') && WITH_MASK.test(url);
}
