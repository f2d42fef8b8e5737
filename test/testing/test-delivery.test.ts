/** The test kit advances its clock only while no attempt takes real time, so it must count them correctly. */
import { expect, it } from 'vitest';
import type { AttemptInFlight, Delivery } from '../../src/engine/ports.ts';
import { TestDelivery } from '../../src/testing/test-delivery.ts';
import { claimed } from '../engine/fixtures.ts';
import { SimulatedClock } from '../support/simulated-clock.ts';

it('does not count an attempt whose idle call is extended after its end', async () => {
  const { promise: ended, resolve: end } = Promise.withResolvers<void>();
  const delivery: Delivery = {
    attempt: async (_claimed, _signal, onStart) => {
      onStart?.({ extend: () => {}, pause: () => {}, interrupt: () => {} });
      await ended;
      return { kind: 'responded', status: 200, header: {}, body: Buffer.alloc(0) };
    },
    close: async () => {},
  };
  const attempts = new TestDelivery(delivery, { clock: new SimulatedClock(), timeoutMsMax: 1_000 });
  let attempt: AttemptInFlight | undefined;
  const outcome = attempts.attempt(claimed(), new AbortController().signal, (started) => {
    attempt = started;
  });
  expect(attempts.inFlight).toBe(1);
  attempt?.pause();
  expect(attempts.inFlight).toBe(0);
  end();
  await outcome;
  attempt?.extend();
  expect(attempts.inFlight).toBe(0);
});
