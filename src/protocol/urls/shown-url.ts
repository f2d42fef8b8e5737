/** Up to the colon after the user name; then the password, up to the last `@` before the path, as `new URL` reads it. */
const WITH_PASSWORD = /^(https?:\/\/[^/?#\\:]*:)[^/?#\\]+@/i;
const WITH_MASK = /^https?:\/\/[^/?#\\:]*:\*\*\*@/i;

/** `url` as everyone but its endpoint sees it: with `***` as its password, if it has one (contract M 5.2.4). */
export function shownUrl(url: string): string {
  return url.includes('@') ? url.replace(WITH_PASSWORD, '$1***@') : url;
}

/** Whether `url` was copied from where `shownUrl` shows it: its password is not known. */
export function isMasked(url: string): boolean {
  return url.includes('@') && WITH_MASK.test(url);
}
