/** Every route, and which of them a request target means (messaging.md 1.1, 28). */
import { percentDecode } from '../protocol/percent-encoding.ts';
import { readTarget } from '../protocol/request-target.ts';
import { batchRoutes } from './batch.ts';
import { dlqRoutes } from './dlq.ts';
import { documentRoutes } from './document.ts';
import { flowControlRoutes } from './flow-control.ts';
import { healthRoutes } from './health.ts';
import { keyRoutes } from './keys.ts';
import { logRoutes } from './logs.ts';
import { messageRoutes } from './messages.ts';
import { publishRoutes } from './publish.ts';
import { queueRoutes } from './queues.ts';
import type { Route, Services } from './route.ts';
import { scheduleRoutes } from './schedules.ts';
import { triggerRoutes } from './triggers.ts';
import { urlGroupRoutes } from './url-groups.ts';

/** The route table. Access checks, the interface document and their tests are made from it. */
export function createRoutes(services: Services): Route[] {
  const routes = [
    ...publishRoutes(services),
    ...batchRoutes(services),
    ...triggerRoutes(services),
    ...messageRoutes(services),
    ...dlqRoutes(services),
    ...logRoutes(services),
    ...urlGroupRoutes(services),
    ...scheduleRoutes(services),
    ...queueRoutes(services),
    ...flowControlRoutes(services),
    ...keyRoutes(services),
    ...healthRoutes(services),
  ];
  return [...routes, ...documentRoutes(routes)];
}

/** What a request target names. */
export interface Match {
  /** By method; empty when no route has this path. */
  routes: ReadonlyMap<string, Route>;
  id: string;
  rawDestination: string;
  rawQuery: string;
  /** False on health routes and on what lies outside the interface, where no token is asked for. */
  isProtected: boolean;
}

const NO_ROUTES: ReadonlyMap<string, Route> = new Map();

/** Finds the routes of a raw request target; never throws, whatever the target. */
export class RouteFinder {
  /** By path, with `*` in place of its parameter, and without its destination. */
  readonly #byPath = new Map<string, Map<string, Route>>();

  constructor(routes: readonly Route[]) {
    for (const route of routes) {
      // The destination at the end of a path is read apart from it; fixed words match in any letter case.
      const key = route.path.replace(/\/\*$/, '').replace(/:\w+/, '*').toLowerCase();
      const methods = this.#byPath.get(key) ?? new Map<string, Route>();
      methods.set(route.method, route);
      this.#byPath.set(key, methods);
    }
  }

  find(rawTarget: string, method: string): Match {
    const { routePath, rawDestination = '', rawQuery } = readTarget(rawTarget, method);
    const isProtected = routePath === '/v2' || routePath.startsWith('/v2/');
    const fixed = this.#byPath.get(routePath);
    if (fixed) return { routes: fixed, id: '', rawDestination, rawQuery, isProtected };
    const { routes = NO_ROUTES, rawId } = this.#withParameter(routePath);
    // An id with a malformed escape is simply one that nobody has.
    return { routes, id: percentDecode(rawId) ?? rawId, rawDestination, rawQuery, isProtected };
  }

  /**
   * The parameter is the last segment or the one before it: `/v2/messages/{id}`, `/v2/messages/{id}/explain`. There it
   * may be empty, and the handler says what is missing.
   */
  #withParameter(routePath: string): { routes?: ReadonlyMap<string, Route>; rawId: string } {
    const segments = routePath.split('/');
    for (const at of [segments.length - 1, segments.length - 2]) {
      const rawId = segments[at];
      if (rawId === undefined) continue;
      const routes = this.#byPath.get(segments.with(at, '*').join('/'));
      if (routes) return { routes, rawId };
    }
    return { rawId: '' };
  }
}
