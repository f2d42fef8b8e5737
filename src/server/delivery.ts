/** Creates the delivery of a worker from its settings: allowed addresses, limits and signing keys. */

import { selfTest } from '../delivery/addresses/self-test.ts';
import { createDelivery, type DeliveryOptions } from '../delivery/delivery.ts';
import type { Delivery } from '../engine/ports.ts';
import { withWallTime } from '../engine/workers/steady-clock.ts';
import type { WorkerContext } from './context.ts';

/** Creates the delivery, after a self-test that the delivery's options block forbidden addresses. */
export async function openDelivery(context: WorkerContext): Promise<Delivery> {
  const { config, clock, testClockOptions, randomness, accounts, addresses, resolver, others } = context;
  // The response to a call of a workflow becomes a message, so the response may be as large as a message.
  const runResponseBytesMax = Math.max(config.responseBytesMax, config.messageBytesMax);
  const options: DeliveryOptions = {
    clock: testClockOptions
      ? { ...withWallTime(clock), wallMs: () => testClockOptions.signatureClock.wallMs() }
      : clock,
    randomness,
    signingKey: (projectId) => accounts.signingKeysSync(projectId).current,
    addresses,
    resolver,
    timeoutMsMax: config.timeoutMaxMs,
    responseBytesMax: config.responseBytesMax,
    runResponseBytesMax,
    runFailureBytesMax: Math.max(config.failureResponseBytesMax, runResponseBytesMax),
    responseMemoryBytesMax: config.inFlightBytesMax,
    responseHeaderBytesMax: config.responseHeaderBytesMax,
    connectionsPerOriginMax: config.inFlightPerOriginMax, // an attempt has a connection to itself
    originsMax: config.originsMax,
    baggageHosts: config.baggageHosts.map((host) => host.toLowerCase()),
    verifyTls: config.verifyTls,
    worker: others?.own ?? 0,
    ...(config.region === '' ? {} : { region: config.region }),
  };
  await selfTest(options);
  const delivery = createDelivery(options);
  return testClockOptions?.wrap(delivery) ?? delivery;
}
