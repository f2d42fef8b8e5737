import { ApiError } from './errors.ts';

/**
 * The kinds of names with the grammar of contract M 3.4, and event ids (contract W 14.7). Error texts use the same
 * words (contract M 25).
 */
export type NameKind = 'queue name' | 'schedule id' | 'topic name' | 'flow control key' | 'label' | 'event id';

const NAME = /^[A-Za-z0-9_.-]+$/;
const LENGTH_MAX = 255;
/** URL parsers, and so clients that write names into paths, remove such a segment or the one before it. */
const DOT_SEGMENT = /^\.{1,2}$/;
/** The pattern of `checkNewName` without the length, for the OpenAPI document. */
export const NEW_NAME_PATTERN = '^(?!\\.{1,2}$)[A-Za-z0-9_.-]+$';
/** Length of the part of a wrong name that an error text repeats. */
const SHOWN_MAX = 64;

/** True for 1 to 255 letters, digits, hyphens, periods and underscores. */
export function isName(text: string): boolean {
  return text.length <= LENGTH_MAX && NAME.test(text);
}

/** Whether `text` can never arrive as a segment of a path that a URL parser has read. */
export function isDotSegment(text: string): boolean {
  return DOT_SEGMENT.test(text);
}

/** Like `checkName`, for names that may be new. Names from before this rule can still be looked up and deleted. */
export function checkNewName(kind: Exclude<NameKind, 'label'>, name: string, header?: string): void {
  checkName(kind, name, header);
  if (!isDotSegment(name)) return;
  const where = header === undefined ? '' : ` (${header})`;
  throw new ApiError(
    'invalid_name',
    `invalid ${kind} ${name}: . and .. are no names, since paths cannot hold them${where}`,
  );
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
