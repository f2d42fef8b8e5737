/** Every route (contract M 28). */
import { batchRoutes } from './batch.ts';
import { checkpointRoutes } from './checkpoints.ts';
import { dlqRoutes, runDlqRoutes } from './dlq.ts';
import { documentRoutes } from './document.ts';
import { flowControlRoutes } from './flow-control.ts';
import { healthRoutes } from './health.ts';
import { hookRoutes } from './hooks.ts';
import { keyRoutes, signatureRoutes } from './keys.ts';
import { liveRoutes } from './live.ts';
import { logRoutes, runLogRoutes } from './logs.ts';
import { messageRoutes, unfinishedRoutes } from './messages.ts';
import { minuteRoutes, overviewRoutes, projectMetricRoutes } from './overview.ts';
import { publishRoutes } from './publish.ts';
import { queueRoutes } from './queues.ts';
import type { Route, Services } from './route.ts';
import { parkedRunRoutes, runRoutes } from './runs.ts';
import { scheduleRoutes } from './schedules.ts';
import { sessionRoutes, tokenRoutes } from './tokens.ts';
import { triggerRoutes } from './triggers.ts';
import { urlGroupRoutes } from './url-groups.ts';
import { virtualTimeRoutes } from './virtual-time.ts';
import { allWaiterRoutes, waiterRoutes } from './waiters.ts';

/** The route table. The route finder, access checks, the interface document and their tests are made from it. */
export function createRoutes(services: Services): Route[] {
  const routes = [
    ...publishRoutes(services),
    ...batchRoutes(services),
    ...triggerRoutes(services),
    ...messageRoutes(services),
    ...dlqRoutes(services),
    ...logRoutes(services),
    ...unfinishedRoutes(services),
    ...overviewRoutes(services),
    ...liveRoutes(services),
    ...runLogRoutes(services),
    ...urlGroupRoutes(services),
    ...scheduleRoutes(services),
    ...queueRoutes(services),
    ...flowControlRoutes(services),
    ...runRoutes(services),
    ...checkpointRoutes(services),
    ...runDlqRoutes(services),
    ...parkedRunRoutes(services),
    ...waiterRoutes(services),
    ...allWaiterRoutes(services),
    ...hookRoutes(services),
    ...keyRoutes(services),
    ...sessionRoutes(services),
    ...tokenRoutes(services),
    ...signatureRoutes(services),
    ...minuteRoutes(services),
    ...virtualTimeRoutes(services),
    ...projectMetricRoutes(services),
    ...healthRoutes(services),
  ];
  return [...routes, ...documentRoutes(routes, services)];
}

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
