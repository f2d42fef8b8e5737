import { beforeEach, expect, it } from 'vitest';
import { IntakeHealth } from '../../src/engine/messages/intake-health.ts';
import { StoreUnavailable } from '../../src/engine/store-errors.ts';

const clock = { elapsedMs: 0 };
let health: IntakeHealth;
beforeEach(() => {
  health = new IntakeHealth(clock);
});

const save = () => health.watch(async () => 'saved');
const refuse = (error: Error = new StoreUnavailable('the disk is full')) =>
  expect(health.watch(() => Promise.reject(error))).rejects.toBe(error);

function isHealthy(): boolean {
  try {
    health.check();
    return true;
  } catch (error) {
    expect(error).toBeInstanceOf(StoreUnavailable);
    return false;
  }
}

it('is well before the first publish, and passes on what each one answers', async () => {
  expect(isHealthy()).toBe(true);
  expect(await save()).toBe('saved');
  expect(isHealthy()).toBe(true);
});

it('is ill from the first publish that the store refuses', async () => {
  await save();
  await refuse();
  expect(isHealthy()).toBe(false);
});

it('stays ill while one in ten publishes is saved', async () => {
  for (let round = 0; round < 5; round += 1) {
    await refuse();
    for (let saved = 0; saved < 9; saved += 1) {
      await save();
      expect(isHealthy()).toBe(false);
    }
  }
});

it('is well again once ten in a row were saved', async () => {
  await refuse();
  for (let saved = 0; saved < 10; saved += 1) await save();
  expect(isHealthy()).toBe(true);
});

it('is well again three seconds after the last refusal, when nobody publishes', async () => {
  await refuse();
  clock.elapsedMs += 3_000;
  expect(isHealthy()).toBe(false);
  clock.elapsedMs += 1;
  expect(isHealthy()).toBe(true);
});

it("takes a caller's own mistake for no illness", async () => {
  await refuse(new Error('a limit was reached'));
  expect(isHealthy()).toBe(true);
});
