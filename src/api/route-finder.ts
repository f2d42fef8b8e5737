/**
 * Finds the routes of a raw request target. Paths contain destinations unescaped. So this code never merges slashes,
 * resolves dots or decodes before the destination is found: each of these operations would change a destination
 * (contract M 1.1, 4.3).
 */
import { isName } from '../protocol/names.ts';
import { pathAndQueryOf, percentDecode } from '../protocol/urls/request-target.ts';
import type { Route } from './route.ts';

/** The routes of a request target, with the values from its path and query. */
export interface Match {
  /** Routes by method; empty if no route has this path. */
  routes: ReadonlyMap<string, Route>;
  /** The values of the path's parameters, in order. */
  ids: string[];
  /**
   * Raw text after the route; `''` if there is none. It includes a final `?`, since an empty query is a part of the destination.
   */
  rawDestination: string;
  /** The raw text after the first `?`. */
  rawQuery: string;
  /** Whether a token is needed; false on public routes and outside the interface. */
  isProtected: boolean;
}

/** A node in the tree of all paths. */
interface Branch {
  /** The child nodes, each by its fixed path segment in lower case. */
  words: Map<string, Branch>;
  /** The child node for a path segment that is a name or an id. */
  parameter?: Branch;
  /** Routes whose path ends here, by method. */
  routes: Map<string, Route>;
}

/** A request path whose route is searched for. */
interface Path {
  text: string;
  method: string;
  /** Whether trailing slashes and the letter case of fixed words are ignored. */
  isOfInterface: boolean;
  /** End of the path without trailing slashes. */
  end: number;
}

interface FoundRoutes {
  routes: ReadonlyMap<string, Route>;
  rawIds: readonly string[];
  /** The position of the destination, on routes with a destination. */
  destinationAt?: number;
}

const NO_ROUTES: FoundRoutes = { routes: new Map(), rawIds: [] };

/** Finds the routes of a raw request target, in origin-form or absolute-form. Never throws. */
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
    const { routes, rawIds, destinationAt } = (isPath ? walk(this.#root, path, 1, []) : undefined) ?? NO_ROUTES;
    const behindPath = queryAt >= 0 && rawQuery === '' ? '?' : '';
    const rawDestination = destinationAt === undefined ? '' : text.slice(destinationAt) + behindPath;
    // An id with a malformed escape is not decoded: nothing has such an id.
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
 * Finds the routes for the rest of the path, from `at`. A fixed word takes precedence over a parameter. A parameter may be
 * empty, as in `/v2/messages//explain`: the handler then reports what is missing.
 */
function walk(branch: Branch, path: Path, at: number, rawIds: readonly string[]): FoundRoutes | undefined {
  const { routes } = branch;
  const takesDestination = isDestinationBehind(branch, path.method);
  const isOver = at > path.end;
  const routesBelow = isOver ? undefined : descend(branch, path, at, rawIds);
  if (!takesDestination) return isOver && routes.size > 0 ? { routes, rawIds } : routesBelow;
  // The rest is a destination, unless it names another route with this method (contract M 22.13).
  if (routesBelow?.routes.has(path.method) && routesBelow.rawIds.every(isDecodedName)) return routesBelow;
  // A destination needs all names before it, such as the queue's name in `/v2/enqueue/{queue}/…`.
  return rawIds.includes('') ? undefined : { routes, rawIds, destinationAt: at };
}

function descend(branch: Branch, path: Path, at: number, rawIds: readonly string[]): FoundRoutes | undefined {
  const { words, parameter } = branch;
  if (words.size === 0 && !parameter) return undefined;
  const slashAt = path.text.indexOf('/', at);
  const segmentEnd = slashAt < 0 || slashAt > path.end ? path.end : slashAt;
  const segment = path.text.slice(at, segmentEnd);
  const word = words.get(segment) ?? (path.isOfInterface ? words.get(segment.toLowerCase()) : undefined);
  const routesOfWord = word && walk(word, path, segmentEnd + 1, rawIds);
  return routesOfWord ?? (parameter && walk(parameter, path, segmentEnd + 1, [...rawIds, segment]));
}

/** Whether a destination may follow, which depends on the method if other paths share this prefix. */
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

/** All methods of a path need a token, or none does, so that a caller without a token learns nothing. */
function isPublic(routes: ReadonlyMap<string, Route>): boolean {
  for (const { access } of routes.values()) return access === 'public';
  return false;
}
