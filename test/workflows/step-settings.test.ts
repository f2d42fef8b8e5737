/** Retries and flow control of single steps (contract W 6.6), with a stand-in for the library that will send them. */
import { describe, expect } from 'vitest';
import { LIBRARY, type Terms } from './support/library.ts';
import { scenario } from './support/scenario.ts';
import type { Service } from './support/service.ts';
import { type Mismatches, type Program, type StepSettings, serveSteps } from './support/step-settings.ts';

const PATH = '/steps';

function served(service: Service, program: Program, terms: Terms = {}) {
  const mismatches: Mismatches = [];
  service.app.workflow(PATH, serveSteps(program, mismatches, service.env));
  return { mismatches, path: service.triggered(LIBRARY, PATH, terms) };
}

/** What the deliveries so far said that they were made with. */
function configurations({ app }: Service): string[] {
  const names = ['workflow-step-config', 'max-retries', 'retry-delay', 'flow-control-key', 'flow-control-value'];
  return app.calls(PATH).map(({ headers }) => names.map((name) => headers[`upstash-${name}`] ?? '-').join(' '));
}

const TRIGGER: Terms = { retries: 0, retryDelay: '9000', flowControl: { key: 'run', parallelism: 5 } };
const OF_TRIGGER = '- 0 9000 run parallelism=5,period=1';

scenario(
  'delivers the first step once more for its settings, and those after it as the run says',
  async ({ service }) => {
    const attempts: number[] = [];
    const startMs = service.clock.nowMs();
    const first = {
      name: 'first',
      settings: { retries: 1, retryDelay: '2000' },
      run: () => {
        attempts.push(service.clock.nowMs() - startMs);
        if (attempts.length === 1) throw new Error('the first time');
        return 'one';
      },
    };
    const { path, mismatches } = served(service, { steps: [first, { name: 'second', run: () => 'two' }] }, TRIGGER);
    const run = await path.trigger();
    expect(await run.result()).toEqual(['one', 'two']);
    expect(attempts).toEqual([0, 2_000]);
    const ofFirst = 'true 1 2000 run parallelism=5,period=1';
    expect(configurations(service)).toEqual([OF_TRIGGER, ofFirst, ofFirst, OF_TRIGGER, OF_TRIGGER]);
    expect(mismatches).toEqual([]);
    expect(await run.groups()).toEqual([
      'Initial init: STEP_SUCCESS',
      'Run first: STEP_SUCCESS',
      'Run second: STEP_SUCCESS',
    ]);
  },
);

scenario(
  'delivers a later step with its settings at once, since they come with the result before it',
  async ({ service }) => {
    const steps = [
      { name: 'first', run: () => 'one' },
      { name: 'second', settings: { flowControl: { key: 'step', rate: 3, period: 60 } }, run: () => 'two' },
      { name: 'third', settings: { retries: 2 }, run: () => 'three' },
    ];
    const { path } = served(service, { steps }, TRIGGER);
    const run = await path.trigger();
    expect(await run.result()).toEqual(['one', 'two', 'three']);
    expect(configurations(service)).toEqual([
      OF_TRIGGER,
      'true 0 9000 step rate=3,period=60',
      'true 2 9000 run parallelism=5,period=1',
      OF_TRIGGER,
    ]);
  },
);

scenario('limits only the step that has the key', async ({ service }) => {
  const { app } = service;
  let prepared = 0;
  const charge = async () => {
    await app.hold();
    return 'charged';
  };
  const steps = [
    { name: 'prepare', run: () => ++prepared },
    { name: 'charge', settings: { flowControl: { key: 'payments', parallelism: 1 } }, run: charge },
  ];
  const { path } = served(service, { steps });
  const runs = [await path.trigger(), await path.trigger(), await path.trigger()];
  for (const _ of runs) {
    await service.until('the next charge', () => app.held > 0);
    expect([prepared, app.held]).toEqual([3, 1]);
    app.release();
  }
  for (const run of runs) expect(await run.result()).toEqual([expect.any(Number), 'charged']);
});

describe('tells a library what it compares with its step', () => {
  const settings: StepSettings[] = [
    { flowControl: { key: 'k', parallelism: 3 } },
    { flowControl: { key: 'k', rate: 5, period: '2m' } },
    { flowControl: { key: 'k', parallelism: 1, rate: 5, period: 7 } },
    { retries: 0 },
    { retries: 3 },
    { retryDelay: '1000 * (1 + retried)' },
    { flowControl: { key: 'k', parallelism: 3 }, retries: 5, retryDelay: '1000' },
  ];
  for (const set of settings) {
    scenario(JSON.stringify(set), async ({ service }) => {
      const { path, mismatches } = served(
        service,
        { steps: [{ name: 'one', settings: set, run: () => 1 }] },
        { retries: 1 },
      );
      const run = await path.trigger();
      expect(await run.result()).toEqual([1]);
      expect(mismatches).toEqual([]);
      expect(service.app.calls(PATH)).toHaveLength(3);
    });
  }
});

scenario('runs the step once when the delivery that has asked for its settings is made again', async ({ service }) => {
  let asked = 0;
  let ran = 0;
  const program: Program = {
    steps: [{ name: 'one', settings: { retries: 5 }, run: () => service.app.hold().then(() => ++ran) }],
    asked: () => {
      asked += 1;
      if (asked === 1) throw new Error('too late for an answer');
    },
  };
  const { path } = served(service, program, { retries: 1, retryDelay: '1000' });
  const run = await path.trigger();
  await service.until('the second request', () => asked === 2);
  expect((await run.log()).workflowState).toBe('RUN_STARTED');
  service.app.release();
  expect(await run.result()).toEqual([1]);
});

scenario('fails the run of a library that asks again instead of running its step', async ({ service }) => {
  const told: string[] = [];
  service.app.plain('/failed', async (request) => {
    told.push(JSON.parse(await request.text()).workflowRunId);
    return new Response();
  });
  const program: Program = { steps: [{ name: 'one', settings: { retries: 5 }, run: () => 1 }], isBlind: true };
  const { path } = served(service, program, { failureUrl: service.at('/failed') });
  const run = await path.trigger();
  const log = await run.finished();
  expect(log.workflowState).toBe('RUN_FAILED');
  expect(await run.groups()).toEqual(['Initial init: STEP_SUCCESS', 'next: STEP_FAILED (1 errors)']);
  expect(told).toEqual([run.id]);
  expect(service.app.calls(PATH)).toHaveLength(2);
});
