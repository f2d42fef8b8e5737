/** Checks the names of queues, URL groups, flow-control keys, schedules, labels and events. */
import { ApiError } from './errors.ts';

/**
 * The kinds of names with the grammar of contract M 3.4, and event ids (contract W 14.7). Error texts use the same
 * words (contract M 25).
 */
export type NameKind = 'queue name' | 'schedule id' | 'topic name' | 'flow control key' | 'label' | 'event id';

const NAME = /^[A-Za-z0-9_.-]+$/;
const LENGTH_MAX = 255;
/** URL parsers remove `.` and `..` from paths, so a client that writes such a name into a path requests another path. */
const DOT_SEGMENT = /^\.{1,2}$/;
/** The pattern of `checkNewName` without the length, for the OpenAPI document. */
export const NEW_NAME_PATTERN = '^(?!\\.{1,2}$)[A-Za-z0-9_.-]+$';
/** An error text quotes at most this many characters of an invalid name. */
const SHOWN_MAX = 64;

/** True for 1 to 255 letters, digits, hyphens, periods and underscores. */
export function isName(text: string): boolean {
  return text.length <= LENGTH_MAX && NAME.test(text);
}

/** Whether URL parsers remove `text` as a segment of a path. */
export function isDotSegment(text: string): boolean {
  return DOT_SEGMENT.test(text);
}

/**
 * Like `checkName`, but also rejects `.` and `..`. Only for new names: older versions accepted `.` and `..` as names,
 * and the items with these names can still be deleted.
 */
export function checkNewName(kind: Exclude<NameKind, 'label'>, name: string, header?: string): void {
  checkName(kind, name, header);
  if (!isDotSegment(name)) return;
  const where = header === undefined ? '' : ` (${header})`;
  throw new ApiError(
    'invalid_name',
    `invalid ${kind} ${name}: . and .. are not allowed, since URL parsers remove them from paths${where}`,
  );
}

/**
 * Throws `invalid_name` (400) unless `isName(name)`. `header` is the config header that contains the name, if any;
 * the error names this header.
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
