/** The responses to publishes that exceed what can be saved. When that is so, is decided and tested in the engine. */
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Overloaded } from '../../src/protocol/rate-limits.ts';
import { openRunWorld, type RunWorld, stepHeaders, WORKFLOW } from './support/run-world.ts';

const DESTINATION = 'https://app.example/hook';

let world: RunWorld;
beforeEach(async () => {
  world = await openRunWorld();
});
afterEach(() => world.close());

/** From now on there is no room for what comes anew. */
function overload(): void {
  vi.spyOn(world.engine, 'checkAdmission').mockImplementation(() => {
    throw new Overloaded(7);
  });
}

describe.each([
  ['a publish', `publish/${DESTINATION}`, {}],
  ['a publish into a queue', `enqueue/line/${DESTINATION}`, {}],
  ['the start of a workflow run', `publish/${WORKFLOW}`, { 'upstash-workflow-init': 'true' }],
  ['a trigger', `trigger/${WORKFLOW}`, {}],
])('%s that comes in an overload', (_what, path, headers) => {
  it('gets 503 with a Retry-After header', async () => {
    overload();
    const reply = await world.post(path, headers, 'body');
    expect([reply.status, reply.headers['retry-after']]).toEqual([503, '7']);
    expect(reply.json).toEqual({ error: 'too many messages are being published, try again in 7 s' });
  });

  it('gets its response before its body is read', async () => {
    overload();
    const tooLong = 'x'.repeat(200_000);
    expect((await world.post(path, headers, tooLong)).status).toBe(503);
  });

  it('makes nothing', async () => {
    overload();
    await world.post(path, headers, 'body');
    await world.settled();
    expect([world.deliveries, await world.countStored()]).toEqual([[], 0]);
  });
});

it('tells who has no token of that, and not of the overload', async () => {
  overload();
  expect((await world.post(`publish/${DESTINATION}`, { authorization: 'Bearer nobody' })).status).toBe(401);
});

describe('what continues a workflow run is taken in an overload', () => {
  beforeEach(() => world.trigger('wfr_1'));

  it('a step', async () => {
    overload();
    const step = JSON.stringify({ stepId: 1, stepName: 'one', stepType: 'Run', out: '1', concurrent: 1 });
    expect((await world.post(`publish/${WORKFLOW}`, stepHeaders('wfr_1'), step)).status).toBe(200);
    await world.settled();
    expect(world.of('wfr_1').at(-1)?.entries).toEqual(['payload', step]);
  });

  it('steps side by side', async () => {
    overload();
    await world.append('wfr_1', [
      { step: { stepId: 1, stepName: 'one', stepType: 'Run', out: '1', concurrent: 2, targetStep: 1 } },
      { step: { stepId: 2, stepName: 'two', stepType: 'Run', out: '2', concurrent: 2, targetStep: 2 } },
    ]);
    expect(world.of('wfr_1')).toHaveLength(3);
  });

  it('an invocation of another run', async () => {
    overload();
    await world.invoke('wfr_1', 1, 'wfr_child');
    expect(world.of('wfr_child')).toHaveLength(1);
  });

  it('the second phase of a trigger', async () => {
    overload();
    const headers = { 'upstash-workflow-init': 'true', 'upstash-workflow-trigger-by-sdk': 'true' };
    expect((await world.post(`publish/${WORKFLOW}`, headers, '{}')).status).toBe(200);
  });
});
