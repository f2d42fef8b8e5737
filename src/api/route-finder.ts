/**
 * Which routes does a raw request target mean? Destinations are embedded in paths unescaped, so nothing here merges slashes,
 * resolves dots or decodes: each of these would destroy them (contract M 1.1, 4.3).
 */
import { isName } from '../protocol/names.ts';
import { percentDecode } from '../protocol/percent-encoding.ts';
import { pathAndQueryOf } from '../protocol/request-target.ts';
import type { Route } from './route.ts';

/** What a request target names. */
export interface Match {
  /** By method; empty when no route has this path. */
  routes: ReadonlyMap<string, Route>;
  /** What stands for the parameters of the path, in order. */
  ids: string[];
  /** Raw text behind the route; `''` without one. A `?` with nothing behind it is a part of it: there is no query that it begins. */
  rawDestination: string;
  /** Everything behind the first `?`. */
  rawQuery: string;
  /** False on public routes and on what lies outside the interface, where no token is asked for. */
  isProtected: boolean;
}

/** One point of the paths of the table. */
interface Branch {
  /** By the fixed words that may follow, in lower case. */
  words: Map<string, Branch>;
  /** Where a name or an id may follow. */
  parameter?: Branch;
  /** Of the paths that end here, by method. */
  routes: Map<string, Route>;
}

/** A path on its way through the table. */
interface Path {
  text: string;
  method: string;
  /** Whether trailing slashes and the letter case of fixed words are of no interest. */
  isOfInterface: boolean;
  /** Where it ends without trailing slashes. */
  end: number;
}

interface Found {
  routes: ReadonlyMap<string, Route>;
  rawIds: readonly string[];
  /** Where the destination begins, on routes that have one. */
  destinationAt?: number;
}

const NOTHING: Found = { routes: new Map(), rawIds: [] };

/** Finds the routes of a raw request target, in origin-form or absolute-form; never throws, whatever the target. */
export class RouteFinder {
  readonly #root = newBranch();

  constructor(routes: readonly Route[]) {
    for (const route of routes) {
      let branch = this.#root;
      for (const word of route.path.slice(1).split('/')) {
        if (word.startsWith(':')) branch = branch.parameter ??= newBranch();
        else if (word !== '*') branch = wordOf(branch, word.toLowerCase());
      }
      branch.routes.set(route.method, route);
    }
  }

  find(rawTarget: string, method: string): Match {
    const target = pathAndQueryOf(rawTarget);
    const queryAt = target.indexOf('?');
    const text = queryAt < 0 ? target : target.slice(0, queryAt);
    const rawQuery = queryAt < 0 ? '' : target.slice(queryAt + 1);
    const isOfInterface = /^\/v2(\/|$)/i.test(text);
    const end = isOfInterface ? endOf(text) : text.length;
    const isPath = text.startsWith('/'); // and not `*` or `host:443`
    const path = { text, method, isOfInterface, end };
    const { routes, rawIds, destinationAt } = (isPath ? walk(this.#root, path, 1, []) : undefined) ?? NOTHING;
    const behindPath = queryAt >= 0 && rawQuery === '' ? '?' : '';
    const rawDestination = destinationAt === undefined ? '' : text.slice(destinationAt) + behindPath;
    // An id with a malformed escape is simply one that nobody has.
    const ids = rawIds.map((rawId) => percentDecode(rawId) ?? rawId);
    return { routes, ids, rawDestination, rawQuery, isProtected: isOfInterface && !isPublic(routes) };
  }
}

function newBranch(): Branch {
  return { words: new Map(), routes: new Map() };
}

function wordOf({ words }: Branch, word: string): Branch {
  const branch = words.get(word) ?? newBranch();
  words.set(word, branch);
  return branch;
}

function endOf(text: string): number {
  let end = text.length;
  while (text[end - 1] === '/') end -= 1;
  return end;
}

/**
 * What the rest of the path, from `at`, leads to. A fixed word goes before a parameter. A parameter may be empty, as in
 * `/v2/messages//explain`: the handler says what is missing.
 */
function walk(branch: Branch, path: Path, at: number, rawIds: readonly string[]): Found | undefined {
  const { routes } = branch;
  const takesDestination = isDestinationBehind(branch, path.method);
  const isOver = at > path.end;
  const found = isOver ? undefined : descend(branch, path, at, rawIds);
  if (!takesDestination) return isOver && routes.size > 0 ? { routes, rawIds } : found;
  // What could be a destination is one, unless a route of this method is named by it (contract M 22.13).
  if (found?.routes.has(path.method) && found.rawIds.every(isDecodedName)) return found;
  // A destination needs all names before it, as the queue's in `/v2/enqueue/{queue}/…`.
  return rawIds.includes('') ? undefined : { routes, rawIds, destinationAt: at };
}

function descend(branch: Branch, path: Path, at: number, rawIds: readonly string[]): Found | undefined {
  const { words, parameter } = branch;
  if (words.size === 0 && !parameter) return undefined;
  const slashAt = path.text.indexOf('/', at);
  const segmentEnd = slashAt < 0 || slashAt > path.end ? path.end : slashAt;
  const segment = path.text.slice(at, segmentEnd);
  const word = words.get(segment) ?? (path.isOfInterface ? words.get(segment.toLowerCase()) : undefined);
  const found = word && walk(word, path, segmentEnd + 1, rawIds);
  return found ?? (parameter && walk(parameter, path, segmentEnd + 1, [...rawIds, segment]));
}

/** Where other paths go on from here, only of the methods whose route has a destination. */
function isDestinationBehind({ routes, words, parameter }: Branch, method: string): boolean {
  if (words.size > 0 || parameter) return hasDestination(routes.get(method));
  const [any] = routes.values();
  return hasDestination(any);
}

function hasDestination(route: Route | undefined): boolean {
  return route?.path.endsWith('/*') === true;
}

function isDecodedName(rawId: string): boolean {
  return isName(percentDecode(rawId) ?? '');
}

/** All methods of a path have the same answer to this: who is asked for a token must not learn more than others. */
function isPublic(routes: ReadonlyMap<string, Route>): boolean {
  for (const { access } of routes.values()) return access === 'public';
  return false;
}
