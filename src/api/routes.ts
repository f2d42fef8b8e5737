/** Every route, and which of them a request target means (contract M 1.1, 28). */
import { percentDecode } from '../protocol/percent-encoding.ts';
import { readTarget } from '../protocol/request-target.ts';
import { batchRoutes } from './batch.ts';
import { dlqRoutes } from './dlq.ts';
import { documentRoutes } from './document.ts';
import { flowControlRoutes } from './flow-control.ts';
import { healthRoutes } from './health.ts';
import { hookRoutes } from './hooks.ts';
import { keyRoutes } from './keys.ts';
import { logRoutes } from './logs.ts';
import { messageRoutes } from './messages.ts';
import { publishRoutes } from './publish.ts';
import { queueRoutes } from './queues.ts';
import type { Route, Services } from './route.ts';
import { runDlqRoutes } from './run-dlq.ts';
import { runLogRoutes } from './run-logs.ts';
import { runRoutes } from './runs.ts';
import { scheduleRoutes } from './schedules.ts';
import { triggerRoutes } from './triggers.ts';
import { urlGroupRoutes } from './url-groups.ts';
import { waiterRoutes } from './waiters.ts';

/** The route table. Access checks, the interface document and their tests are made from it. */
export function createRoutes(services: Services): Route[] {
  const routes = [
    ...publishRoutes(services),
    ...batchRoutes(services),
    ...triggerRoutes(services),
    ...messageRoutes(services),
    ...dlqRoutes(services),
    ...logRoutes(services),
    ...runLogRoutes(services),
    ...urlGroupRoutes(services),
    ...scheduleRoutes(services),
    ...queueRoutes(services),
    ...flowControlRoutes(services),
    ...runRoutes(services),
    ...runDlqRoutes(services),
    ...waiterRoutes(services),
    ...hookRoutes(services),
    ...keyRoutes(services),
    ...healthRoutes(services),
  ];
  return [...routes, ...documentRoutes(routes)];
}

/** What a request target names. */
export interface Match {
  /** By method; empty when no route has this path. */
  routes: ReadonlyMap<string, Route>;
  /** What stands for the parameters of the path, in order. */
  ids: string[];
  rawDestination: string;
  rawQuery: string;
  /** False on public routes and on what lies outside the interface, where no token is asked for. */
  isProtected: boolean;
}

type Routes = Map<string, Route>;

/** What may follow at one point of a path: fixed words, and `*` for a parameter. */
interface Branch {
  next: Map<string, Branch>;
  /** By method; present where a path may end. */
  routes?: Routes;
}

const NO_ROUTES: ReadonlyMap<string, Route> = new Map();
const NO_IDS: string[] = [];

/** Finds the routes of a raw request target; never throws, whatever the target. */
export class RouteFinder {
  /** Paths without parameters, publishes among them, in one look. */
  readonly #fixed = new Map<string, Routes>();
  readonly #root: Branch = { next: new Map() };

  constructor(routes: readonly Route[]) {
    for (const route of routes) {
      // The destination at the end of a path is read apart from it; fixed words match in any letter case.
      const path = route.path.replace(/\/\*$/, '').replace(/:\w+/g, '*').toLowerCase();
      const methods = routesAt(this.#root, path);
      methods.set(route.method, route);
      if (!path.includes('*')) this.#fixed.set(path, methods);
    }
  }

  find(rawTarget: string, method: string): Match {
    const { routePath, rawDestination = '', rawQuery } = readTarget(rawTarget, method);
    const fixed = this.#fixed.get(routePath);
    const { routes = NO_ROUTES, rawIds = NO_IDS } = fixed ? { routes: fixed } : this.#withParameters(routePath);
    const isOfInterface = routePath === '/v2' || routePath.startsWith('/v2/');
    const isProtected = isOfInterface && !isPublic(routes);
    // An id with a malformed escape is simply one that nobody has.
    const ids = rawIds.map((rawId) => percentDecode(rawId) ?? rawId);
    return { routes, ids, rawDestination, rawQuery, isProtected };
  }

  #withParameters(routePath: string): { routes?: Routes; rawIds?: string[] } {
    const segments = routePath.split('/');
    const rawIds: string[] = [];
    const routes = walk(this.#root, segments, 0, rawIds);
    return routes ? { routes, rawIds } : {};
  }
}

/** The routes of `path` in the tree, which gets them there if need be. */
function routesAt(root: Branch, path: string): Routes {
  let branch = root;
  for (const word of path.split('/')) {
    let next = branch.next.get(word);
    if (next === undefined) {
      next = { next: new Map() };
      branch.next.set(word, next);
    }
    branch = next;
  }
  branch.routes ??= new Map();
  return branch.routes;
}

/**
 * A fixed word goes before a parameter. A parameter may be empty, as in `/v2/messages//explain`: the handler says what is
 * missing. What stands for the parameters is put into `rawIds`.
 */
function walk(branch: Branch, segments: readonly string[], at: number, rawIds: string[]): Routes | undefined {
  const segment = segments[at];
  if (segment === undefined) return branch.routes;
  const word = segment === '*' ? undefined : branch.next.get(segment);
  const found = word && walk(word, segments, at + 1, rawIds);
  const parameter = branch.next.get('*');
  if (found || !parameter) return found;
  const count = rawIds.length;
  rawIds.push(segment);
  const behind = walk(parameter, segments, at + 1, rawIds);
  if (!behind) rawIds.length = count;
  return behind;
}

/** All methods of a path have the same answer to this: who is asked for a token must not learn more than others. */
function isPublic(routes: ReadonlyMap<string, Route>): boolean {
  for (const { access } of routes.values()) return access === 'public';
  return false;
}
