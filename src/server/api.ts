/** Creates the API of a worker from its settings and services. */

import { StoredTokens } from '../accounts/project-tokens.ts';
import { createApi } from '../api/app.ts';
import type { Listener } from '../api/edge/listener.ts';
import type { Services } from '../api/route.ts';
import { DEVELOPMENT_ACCOUNTS } from '../config/development.ts';
import { AddressGuard } from '../delivery/addresses/address-guard.ts';
import {
  checkDestination,
  DestinationCheck,
  type DestinationVerdict,
} from '../delivery/addresses/destination-check.ts';
import type { Engine } from '../engine/commands.ts';
import { withWallTime } from '../engine/workers/steady-clock.ts';
import { CannotStart } from '../system/cannot-start.ts';
import { endOfTurn } from '../system/system.ts';
import { readVersion } from '../system/version.ts';
import { readConsole } from './console-files.ts';
import type { WorkerContext } from './context.ts';

/** Throws `CannotStart` if the list of trusted proxies is invalid. */
export function createWorkerApi(context: WorkerContext, engine: Engine, isReady: () => boolean): Listener {
  const { config, store, sealer, credentials, accounts, clock, log, metrics, browsers, others, testClockOptions } =
    context;
  const tokens = new StoredTokens(store, accounts, clock, log, sealer.randomBytes);
  try {
    return createApi({
      engine,
      accounts,
      tokens: credentials === 'own' ? tokens : undefined,
      clock: withWallTime(clock),
      others,
      virtualTime: testClockOptions?.virtualTime,
      log,
      checkDestination: destinationCheckOf(context),
      quotas: {
        retriesDefault: config.retriesDefault,
        retriesMax: config.retriesMax,
        delayMsMax: config.delayMaxMs,
        timeoutMsMax: config.timeoutMaxMs,
      },
      limits: config,
      proxyHeaders: config.proxyHeaders,
      plainHeaders: { cloudEvents: config.forwardCloudEvents, baggage: config.baggageHosts.length > 0 },
      logsPageDefault: config.logsPageDefault,
      trustedProxies: config.trustedProxies,
      browsers,
      console: {
        version: readVersion(),
        docsUrl: config.docsUrl,
        developmentToken: credentials === 'development' ? DEVELOPMENT_ACCOUNTS[0].token : undefined,
        readFiles: () => readConsole(),
      },
      isReady,
      endOfTurn,
      onResponse: metrics && ((isPublish, status, durationMs) => metrics.responded(isPublish, status, durationMs)),
    });
  } catch (error) {
    if (error instanceof TypeError)
      throw new CannotStart(`WAYPOST_TRUSTED_PROXIES: ${error.message}`, { cause: error });
    throw error;
  }
}

/** The check of a destination at publish (contract M 5.2). Attempts check the address again when they connect. */
function destinationCheckOf({ config, addresses, resolver, clock }: WorkerContext): Services['checkDestination'] {
  const { resolveAtPublish } = config;
  const guard = new AddressGuard(addresses);
  const resolves = resolveAtPublish === 'auto' ? addresses.kind === 'deny' : resolveAtPublish === 'yes';
  if (!resolves) return () => (url) => refusalOf(checkDestination(url, guard));
  const check = new DestinationCheck(guard, resolver, clock);
  return (projectId) => (url) => {
    const verdict = check.check(url, projectId, clock.nowMs());
    return verdict instanceof Promise ? verdict.then(refusalOf) : refusalOf(verdict);
  };
}

function refusalOf(verdict: DestinationVerdict): string | undefined {
  switch (verdict.kind) {
    case 'ok':
      return undefined;
    case 'blocked':
      return `${verdict.reason} (${verdict.remedy})`;
    case 'unresolvable':
      return verdict.reason;
  }
}
