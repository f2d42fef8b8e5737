import { ApiError } from './errors.ts';

/**
 * The kinds of names with the grammar of contract M 3.4, and event ids (contract W 14.7). Error texts use the same
 * words (contract M 25).
 */
export type NameKind = 'queue name' | 'schedule id' | 'topic name' | 'flow control key' | 'label' | 'event id';

const NAME = /^[A-Za-z0-9_.-]+$/;
const LENGTH_MAX = 255;
/** Length of the part of a wrong name that an error text repeats. */
const SHOWN_MAX = 64;

/** True for 1 to 255 letters, digits, hyphens, periods and underscores. */
export function isName(text: string): boolean {
  return text.length <= LENGTH_MAX && NAME.test(text);
}

/**
 * Throws `invalid_name` (400) unless `isName(name)`. `header` is the config header that the name came in, if any:
 * errors about a header must name it.
 */
export function checkName(kind: NameKind, name: string, header?: string): void {
  if (isName(name)) return;
  const value = name.length > SHOWN_MAX ? `${name.slice(0, SHOWN_MAX)}…` : name;
  const rule = NAME.test(name)
    ? `at most ${LENGTH_MAX} characters are allowed`
    : 'only letters, digits, hyphen, period and underscore are allowed';
  const where = header === undefined ? '' : ` (${header})`;
  if (name === '') throw new ApiError('invalid_name', `invalid ${kind}: it must not be empty${where}`);
  throw new ApiError('invalid_name', `invalid ${kind} ${value}: ${rule}${where}`);
}
