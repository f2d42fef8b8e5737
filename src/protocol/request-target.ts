import { ApiError } from './errors.ts';
import { isName } from './names.ts';
import { formDecode, percentDecode } from './percent-encoding.ts';

/**
 * Reads the raw request target (contract M 1.1, 4.3). Destination URLs are embedded in paths unescaped, so nothing
 * here merges slashes, resolves dots or decodes: each of these would destroy them.
 */
export interface RequestTarget {
  /**
   * What to route on: fixed words in lower case, without query and trailing slashes; names and ids as they were sent, not decoded.
   * `/v2/publish`, `/v2/trigger`, `/v2/enqueue/{queue}` and `/v2/schedules` for the routes that end in a destination.
   */
  routePath: string;
  /**
   * Raw text behind the route; `''` when it is missing. `undefined` on routes without a destination. A `?` with nothing behind it
   * is a part of it: there is no query that it would begin.
   */
  rawDestination: string | undefined;
  /** Everything behind the first `?`. */
  rawQuery: string;
}

/** Routes with their fixed words; `*` stands for a name or an id. Those with a destination are read before. */
const ROUTES = [
  '/v2/batch/trigger',
  '/v2/messages/*/explain',
  '/v2/queues/*/pause',
  '/v2/queues/*/resume',
  '/v2/schedules/*/pause',
  '/v2/schedules/*/resume',
  '/v2/topics/*/endpoints',
  '/v2/dlq/retry/*',
  '/v2/dlq/*',
  '/v2/flowcontrol/*/pause',
  '/v2/flowcontrol/*/resume',
  '/v2/flowcontrol/*/pin',
  '/v2/flowcontrol/*/unpin',
  '/v2/flowcontrol/*/resetrate',
  '/v2/flowcontrol/*/reset',
  '/v2/globalparallelism',
  '/v2/wait/*',
  '/v2/notify/*/*',
  '/v2/waiters/*',
  '/v2/workflows/hooks/*/*/*',
  '/v2/keys/rotate',
  '/v2/rotate',
  '/v2/workflows/runs/*',
  '/v2/workflows/dlq/resume/*',
  '/v2/workflows/dlq/restart/*',
  '/v2/workflows/dlq/callback/*',
  '/v2/workflows/dlq/delete/*',
  '/v2/workflows/dlq/*',
  '/v2/logs',
  '/v2/events',
  '/v2/workflows/logs',
  '/v2/workflows/events',
  '/v2/workflows/messagelogs',
  '/v2/workflows/runs/*/explain',
];

/** The words that may follow at one point of a path; `*` among them when an id may. */
type Words = Map<string, Words>;

const WORDS: Words = new Map();
for (const route of ROUTES) {
  let words = WORDS;
  for (const word of route.slice(1).split('/')) {
    let next = words.get(word);
    if (next === undefined) {
      next = new Map();
      words.set(word, next);
    }
    words = next;
  }
}

/** Splits a raw request target, in origin-form or absolute-form. Only a POST to `/v2/schedules/…` carries a destination. */
export function readTarget(rawTarget: string, method = 'POST'): RequestTarget {
  const target = pathAndQueryOf(rawTarget);
  const queryAt = target.indexOf('?');
  const path = queryAt < 0 ? target : target.slice(0, queryAt);
  const behindPath = queryAt >= 0 && queryAt === target.length - 1 ? '?' : '';
  const rawQuery = queryAt < 0 ? '' : target.slice(queryAt + 1);

  if (isAt(path, 0, '/v2/publish')) {
    return { routePath: '/v2/publish', rawDestination: path.slice('/v2/publish/'.length) + behindPath, rawQuery };
  }
  if (isAt(path, 0, '/v2/trigger')) {
    return { routePath: '/v2/trigger', rawDestination: path.slice('/v2/trigger/'.length) + behindPath, rawQuery };
  }
  if (isAt(path, 0, '/v2/enqueue')) {
    const queueStart = '/v2/enqueue/'.length;
    const queueEnd = path.indexOf('/', queueStart);
    const queue = path.slice(queueStart, queueEnd < 0 ? path.length : queueEnd);
    const rawDestination = queueEnd < 0 ? '' : path.slice(queueEnd + 1) + behindPath;
    return { routePath: queue === '' ? '/v2/enqueue' : `/v2/enqueue/${queue}`, rawDestination, rawQuery };
  }
  if (method === 'POST' && isAt(path, 0, '/v2/schedules') && !isScheduleAction(path)) {
    return { routePath: '/v2/schedules', rawDestination: path.slice('/v2/schedules/'.length) + behindPath, rawQuery };
  }
  return { routePath: routePathOf(path), rawDestination: undefined, rawQuery };
}

/** The raw target as it is in origin-form: path and query. */
export function pathAndQueryOf(rawTarget: string): string {
  return rawTarget.startsWith('/') ? rawTarget : originFormOf(rawTarget);
}

/** `http://host/path` to `/path`. What is neither form (`*`, `host:443`) stays as it is and matches no route. */
function originFormOf(target: string): string {
  const scheme = /^https?:\/\//i.exec(target);
  if (scheme === null) return target;
  const authority = target.slice(scheme[0].length);
  const pathStart = authority.search(/[/?]/);
  if (pathStart < 0) return '/';
  return authority[pathStart] === '?' ? `/${authority.slice(pathStart)}` : authority.slice(pathStart);
}

/** True when `words` (lower-case) stand in `path` at `start` in any letter case, as whole segments. */
function isAt(path: string, start: number, words: string): boolean {
  const end = start + words.length;
  if (end < path.length && path[end] !== '/') return false;
  return path.startsWith(words, start) || path.slice(start, end).toLowerCase() === words;
}

/** True for `/v2/schedules/{scheduleId}/pause` and `…/resume`; a URL that ends so is a destination (contract M 22.13). */
function isScheduleAction(path: string): boolean {
  const [id = '', action = '', ...rest] = path.slice('/v2/schedules/'.length).split('/');
  const word = action.toLowerCase();
  const decodedId = percentDecode(id);
  return (
    (word === 'pause' || word === 'resume') &&
    rest.every((segment) => segment === '') &&
    decodedId !== undefined &&
    isName(decodedId)
  );
}

function routePathOf(path: string): string {
  if (!isAt(path, 0, '/v2')) return path;
  let end = path.length;
  while (end > 1 && path[end - 1] === '/') end--;
  let words: Words | undefined = WORDS;
  const segments = path.slice(1, end).split('/');
  for (const [i, segment] of segments.entries()) {
    const word = segment.toLowerCase();
    const next: Words | undefined = words?.get(word);
    if (next !== undefined && word !== '*') segments[i] = word;
    words = next ?? words?.get('*');
  }
  return `/${segments.join('/')}`;
}

/** A query string divided between the server and the destination (contract M 4.3, 2.1). */
export interface SplitQuery {
  /** `qstash_token`, decoded; `''` when it is there without a value: it decides all the same. */
  token?: string;
  /** Configuration in order: lower-case header name and decoded value. */
  config: [name: string, value: string][];
  /** What belongs to the destination, byte for byte, without the `?`. */
  rest: string;
}

/** Divides `rawQuery`. Throws `invalid_query` (400) when the value of a config parameter is not decodable. */
export function splitQuery(rawQuery: string): SplitQuery {
  if (rawQuery === '') return { config: [], rest: '' };
  const split: SplitQuery = { config: [], rest: '' };
  const rest: string[] = [];
  for (const piece of rawQuery.split('&')) {
    const { rawName, rawValue } = halves(piece);
    const name = formDecode(rawName)?.toLowerCase() ?? '';
    if (name === 'qstash_token') {
      // Undecodable, it stays raw: no token looks like that, so it is refused as unknown.
      split.token ??= percentDecode(rawValue) ?? rawValue;
    } else if (name.startsWith('upstash-') || name.startsWith('waypost-')) {
      split.config.push([name, decodedValue(name, rawValue)]);
    } else {
      rest.push(piece);
    }
  }
  split.rest = rest.join('&');
  return split;
}

/**
 * The values of each parameter as they came, in order, by decoded name: each piece is looked at once, however many there are
 * of either.
 */
export function queryParameters(rawQuery: string): Map<string, string[]> {
  const parameters = new Map<string, string[]>();
  for (const piece of rawQuery.split('&')) {
    if (piece === '') continue;
    const { rawName, rawValue } = halves(piece);
    const name = formDecode(rawName) ?? rawName;
    const rawValues = parameters.get(name);
    if (rawValues) rawValues.push(rawValue);
    else parameters.set(name, [rawValue]);
  }
  return parameters;
}

/**
 * The values of the parameter `name`, however they are spelt: repeated, comma-separated or both; empty ones are dropped
 * (contract M 1.2.4). `splitCommas: false` is for `url` and `path`, where a comma belongs to the value. Throws
 * `invalid_query` (400) for a value that is not decodable.
 */
export function queryValues(
  name: string,
  rawValues: readonly string[],
  { splitCommas }: { splitCommas: boolean },
): string[] {
  const values: string[] = [];
  for (const rawValue of rawValues) {
    const value = decodedValue(name, rawValue);
    for (const element of splitCommas ? value.split(',') : [value]) {
      if (element !== '') values.push(element);
    }
  }
  return values;
}

function halves(piece: string): { rawName: string; rawValue: string } {
  const equals = piece.indexOf('=');
  if (equals < 0) return { rawName: piece, rawValue: '' };
  return { rawName: piece.slice(0, equals), rawValue: piece.slice(equals + 1) };
}

function decodedValue(name: string, rawValue: string): string {
  const value = formDecode(rawValue);
  if (value === undefined) throw new ApiError('invalid_query', `invalid query parameter ${name}: malformed escape`);
  return value;
}
