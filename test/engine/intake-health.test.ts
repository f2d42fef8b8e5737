import { beforeEach, expect, it } from 'vitest';
import { IntakeHealth } from '../../src/engine/admission/publish-gate.ts';
import { StoreUnavailable } from '../../src/engine/store-errors.ts';

const clock = { elapsedMs: 0 };
let health: IntakeHealth;
beforeEach(() => {
  health = new IntakeHealth(clock);
});

const save = () => health.noteSaved();
const refuse = (error: Error = new StoreUnavailable('the disk is full')) => health.noteFailure(error);

function isHealthy(): boolean {
  try {
    health.check();
    return true;
  } catch (error) {
    expect(error).toBeInstanceOf(StoreUnavailable);
    return false;
  }
}

it('is healthy before the first publish and after each saved one', () => {
  expect(isHealthy()).toBe(true);
  save();
  expect(isHealthy()).toBe(true);
});

it('is unhealthy from the first publish that the store refuses', () => {
  save();
  refuse();
  expect(isHealthy()).toBe(false);
});

it('stays unhealthy while one in ten publishes is saved', () => {
  for (let round = 0; round < 5; round += 1) {
    refuse();
    for (let saved = 0; saved < 9; saved += 1) {
      save();
      expect(isHealthy()).toBe(false);
    }
  }
});

it('is healthy again once ten in a row were saved', () => {
  refuse();
  for (let saved = 0; saved < 10; saved += 1) save();
  expect(isHealthy()).toBe(true);
});

it('is healthy again three seconds after the last refusal, when nobody publishes', () => {
  refuse();
  clock.elapsedMs += 3_000;
  expect(isHealthy()).toBe(false);
  clock.elapsedMs += 1;
  expect(isHealthy()).toBe(true);
});

it("does not count a caller's own mistake as unhealthy", () => {
  refuse(new Error('a limit was reached'));
  expect(isHealthy()).toBe(true);
});
