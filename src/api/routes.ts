/** Every route (contract M 28). */

import { flowControlRoutes } from './lanes/flow-control.ts';
import { queueRoutes } from './lanes/queues.ts';
import { dlqRoutes, runDlqRoutes } from './messages/dlq.ts';
import { logRoutes, runLogRoutes } from './messages/logs.ts';
import { messageRoutes, unfinishedRoutes } from './messages/messages.ts';
import { replayRoutes } from './messages/replay.ts';
import { documentRoutes } from './pages/document.ts';
import { healthRoutes } from './pages/health.ts';
import { keyRoutes, signatureRoutes } from './project/keys.ts';
import { liveRoutes } from './project/live.ts';
import { minuteRoutes, overviewRoutes, projectMetricRoutes } from './project/overview.ts';
import { sessionRoutes, tokenRoutes } from './project/tokens.ts';
import { virtualTimeRoutes } from './project/virtual-time.ts';
import { batchRoutes } from './publishing/batch.ts';
import { publishRoutes } from './publishing/publish.ts';
import { scheduleRoutes } from './publishing/schedules.ts';
import { urlGroupRoutes } from './publishing/url-groups.ts';
import type { Route, Services } from './route.ts';
import { checkpointRoutes } from './runs/checkpoints.ts';
import { hookRoutes } from './runs/hooks.ts';
import { parkedRunRoutes, runRoutes } from './runs/runs.ts';
import { triggerRoutes } from './runs/triggers.ts';
import { allWaiterRoutes, waiterRoutes } from './runs/waiters.ts';

/** Creates the route table. The route finder, access checks, the interface document and their tests are derived from it. */
export function createRoutes(services: Services): Route[] {
  const routes = [
    ...publishRoutes(services),
    ...batchRoutes(services),
    ...triggerRoutes(services),
    ...messageRoutes(services),
    ...dlqRoutes(services),
    ...logRoutes(services),
    ...unfinishedRoutes(services),
    ...replayRoutes(services),
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

/** The default length of a page of the log, for the interface document. */
const LOGS_PAGE_DEFAULT = 1_000;

/** All routes, including optional routes, for descriptions. The handlers do not work, since they have no services. */
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
