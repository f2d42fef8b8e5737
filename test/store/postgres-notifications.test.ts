/** Notifications between workers on one PostgreSQL. */

import { expect, it, onTestFinished } from 'vitest';
import { openPostgresStore } from '../../src/store/drivers/postgres/open.ts';
import { systemClock } from '../../src/system/system.ts';
import { eventually } from '../support/eventually.ts';
import { freshDatabase } from '../support/postgres/shared.ts';
import { cancelMatching } from './cancel-matching.ts';
import { World } from './conformance/world.ts';

it('notifies the others of claims that one has cancelled, even if they exceed the size of one notification', async () => {
  const url = await freshDatabase();
  const onFatal = (error: Error) => {
    throw error;
  };
  const open = (sender: string) => openPostgresStore({ url, sender, clock: systemClock, timeoutMs: 120_000, onFatal });
  const one = await World.open(() => open('one'));
  const other = await World.open(() => open('other'));
  onTestFinished(async () => {
    for (const { store } of [one, other]) await store.close();
  });
  const listening = Promise.withResolvers<void>();
  other.store.events.onDue = () => listening.resolve(); // sent once it is connected
  await listening.promise;
  const heard = new Set<number>();
  other.store.events.onCancelled = (claimTokens) => {
    for (const token of claimTokens) heard.add(token);
  };
  const claimed = await Promise.all(Array.from({ length: 450 }, () => other.acceptClaimed()));
  expect((await cancelMatching(one.store, 1, {}, -1, systemClock.nowMs())).cancelled).toBe(450);
  await eventually('all to be heard of', () => heard.size === 450);
  expect([...heard].toSorted((a, b) => a - b)).toEqual(
    claimed.map((each) => each.claimToken).toSorted((a, b) => a - b),
  );
});
