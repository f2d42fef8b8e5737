/** The interface without a server: for what is built from the route table, such as the types of the console. */
import type { Route, Services } from './route.ts';
import { createRoutes } from './routes.ts';

/** As many as the setting has by default; the document shows it. */
const LOGS_PAGE_DEFAULT = 1_000;

/** Every route, optional ones included. Only their descriptions are usable: no handler has a service behind it. */
export function describedRoutes(): Route[] {
  const services = {
    engine: {},
    tokens: {},
    virtualTime: {},
    limits: {},
    logsPageDefault: LOGS_PAGE_DEFAULT,
    console: {},
    closing: new AbortController().signal,
  };
  return createRoutes(services as unknown as Services);
}
