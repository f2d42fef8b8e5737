/** Every route (contract M 28). */
import { allWaiterRoutes } from './all-waiters.ts';
import { batchRoutes } from './batch.ts';
import { checkpointRoutes } from './checkpoints.ts';
import { dlqRoutes } from './dlq.ts';
import { documentRoutes } from './document.ts';
import { flowControlRoutes } from './flow-control.ts';
import { healthRoutes } from './health.ts';
import { hookRoutes } from './hooks.ts';
import { keyRoutes } from './keys.ts';
import { liveRoutes } from './live.ts';
import { logRoutes } from './logs.ts';
import { messageRoutes } from './messages.ts';
import { minuteRoutes } from './minutes.ts';
import { overviewRoutes } from './overview.ts';
import { parkedRunRoutes } from './parked-runs.ts';
import { projectMetricRoutes } from './project-metrics.ts';
import { publishRoutes } from './publish.ts';
import { queueRoutes } from './queues.ts';
import type { Route, Services } from './route.ts';
import { runDlqRoutes } from './run-dlq.ts';
import { runLogRoutes } from './run-logs.ts';
import { runRoutes } from './runs.ts';
import { scheduleRoutes } from './schedules.ts';
import { sessionRoutes } from './session.ts';
import { signatureRoutes } from './signature.ts';
import { tokenRoutes } from './tokens.ts';
import { triggerRoutes } from './triggers.ts';
import { unfinishedRoutes } from './unfinished.ts';
import { urlGroupRoutes } from './url-groups.ts';
import { virtualTimeRoutes } from './virtual-time.ts';
import { waiterRoutes } from './waiters.ts';

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
