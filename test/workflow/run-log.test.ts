/** The grouped log of a run (contract W 18.1): its groups, the state of each step, and the next deliveries. */
import { Buffer } from 'node:buffer';
import { expect, test } from 'vitest';
import type { DeliveryProgress, RunHistory } from '../../src/workflow/history.ts';
import type { RunState } from '../../src/workflow/model.ts';
import { hasStepIn, runLogOf } from '../../src/workflow/run-log.ts';
import {
  CANCELED,
  DELIVERED,
  dueIn,
  FAILED,
  failure,
  IN_FLIGHT,
  Journal,
  NOW,
  PART,
  RETRYING,
  T0,
} from './histories.ts';

/** `name:STATE` of each step: `a` alone, `[a b]` side by side, `next(a)` at the end. */
function shapeOf(history: RunHistory): string {
  const { groups, next } = runLogOf(history, NOW);
  const shown = groups.map(({ type, steps }) => {
    const names = steps.map(({ info, state }) => `${info.stepName}:${state.slice('STEP_'.length)}`).join(' ');
    return type === 'parallel' ? `[${names}]` : names;
  });
  if (next.length > 0) {
    const steps = next.map(({ message, state }) => `${message.id}:${state.slice('STEP_'.length)}`);
    shown.push(`next(${steps.join(' ')})`);
  }
  return shown.join(' ');
}

const parallel = (): Journal => new Journal().initial().plan(1, 2).plan(2, 2);
const both = { concurrent: 2 };

test.for<[title: string, history: RunHistory, shape: string]>([
  // Sequences.
  [
    'a run whose first delivery is in flight',
    new Journal().initial(IN_FLIGHT).history(),
    'init:SUCCESS next(msg_1:PROGRESS)',
  ],
  [
    'a run that is delayed',
    new Journal().initial(dueIn(9_000), { message: { notBeforeMs: NOW + 9_000 } }).history(),
    'init:SUCCESS',
  ],
  [
    'a first delivery that failed and is retried',
    new Journal().initial(RETRYING).history(),
    'init:SUCCESS next(msg_1:RETRY)',
  ],
  [
    'a first delivery that waits for a slot',
    new Journal().initial(dueIn(-1_000)).history(),
    'init:SUCCESS next(msg_1:PROGRESS)',
  ],
  ['a run that failed at once', new Journal().initial(FAILED).history('RUN_FAILED'), 'init:SUCCESS next(msg_1:FAILED)'],
  [
    'a run that was cancelled between two attempts',
    new Journal().initial({ ...CANCELED, failures: RETRYING.failures }).history('RUN_CANCELED'),
    'init:SUCCESS next(msg_1:CANCELED)',
  ],
  [
    'a step whose delivery is in flight',
    new Journal().initial().step(1, {}, IN_FLIGHT).history(),
    'init:SUCCESS s1:SUCCESS next(msg_2:PROGRESS)',
  ],
  [
    'a step that was published before its delivery got a response',
    new Journal().initial(IN_FLIGHT).step(1, {}, IN_FLIGHT).history(),
    'init:SUCCESS s1:SUCCESS next(msg_2:PROGRESS)',
  ],
  [
    'a delivery that failed after its step was published',
    new Journal().initial(RETRYING).step(1, {}, DELIVERED).history(),
    'init:SUCCESS s1:SUCCESS next(msg_1:RETRY)',
  ],
  [
    'a run that succeeded',
    new Journal().initial().step(1, {}, IN_FLIGHT).history('RUN_SUCCESS'),
    'init:SUCCESS s1:SUCCESS',
  ],
  ['a run without a delivery', new Journal().initial().step(1).history(), 'init:SUCCESS s1:SUCCESS'],
  [
    'messages whose log was deleted',
    new Journal().initial({ failures: [] }).step(1, {}, IN_FLIGHT).history(),
    'init:SUCCESS s1:SUCCESS next(msg_2:PROGRESS)',
  ],
  [
    'a change of settings, which is not a step',
    new Journal().initial().add('stepConfig', 'h1', {}, { callType: 'stepConfig', progress: RETRYING }).history(),
    'init:SUCCESS next(msg_2:RETRY)',
  ],
  [
    'a body that is not a step',
    new Journal().initial().add('step', 'h1', 'nonsense').step(1).history(),
    'init:SUCCESS undefined:SUCCESS s1:SUCCESS',
  ],

  // Sleeps.
  [
    'a sleep',
    new Journal()
      .initial()
      .step(1, { stepType: 'SleepFor', sleepFor: 90 }, dueIn(9_000), { message: { notBeforeMs: NOW + 9_000 } })
      .history(),
    'init:SUCCESS s1:PROGRESS',
  ],
  [
    'a sleep that is over',
    new Journal().initial().step(1, { stepType: 'SleepFor', sleepFor: 1 }, IN_FLIGHT).history(),
    'init:SUCCESS s1:SUCCESS next(msg_2:PROGRESS)',
  ],
  [
    'a sleep that was ended early',
    new Journal()
      .initial()
      .step(1, { stepType: 'SleepFor', sleepFor: 90 }, IN_FLIGHT, { message: { notBeforeMs: NOW + 9_000 } })
      .history(),
    'init:SUCCESS s1:SUCCESS next(msg_2:PROGRESS)',
  ],
  [
    'a sleep that a cancel ended',
    new Journal()
      .initial()
      .step(1, { stepType: 'SleepFor', sleepFor: 90 }, CANCELED, { message: { notBeforeMs: NOW + 9_000 } })
      .history('RUN_CANCELED'),
    'init:SUCCESS s1:CANCELED',
  ],
  [
    'a sleep beside another step',
    new Journal()
      .initial()
      .plan(1, 2, { stepType: 'SleepFor', sleepFor: 90 }, dueIn(9_000))
      .plan(2, 2)
      .step(2, both)
      .history(),
    'init:SUCCESS [s1:PROGRESS s2:SUCCESS]',
  ],

  // Parallel groups.
  ['a group that was planned', parallel().history(), 'init:SUCCESS [s1:PROGRESS s2:PROGRESS]'],
  [
    'a group of which one is done',
    parallel().step(2, both, IN_FLIGHT).history(),
    'init:SUCCESS [s1:PROGRESS s2:SUCCESS]',
  ],
  [
    'a group that is done',
    parallel().step(2, both).step(1, both, IN_FLIGHT).history(),
    'init:SUCCESS [s1:SUCCESS s2:SUCCESS] next(msg_5:PROGRESS)',
  ],
  [
    'a step after a group',
    parallel().step(2, both).step(1, both).step(3, {}, IN_FLIGHT).history(),
    'init:SUCCESS [s1:SUCCESS s2:SUCCESS] s3:SUCCESS next(msg_6:PROGRESS)',
  ],
  [
    'two groups in a row',
    parallel().step(1, both).step(2, both).plan(3, 2).plan(4, 2).history(),
    'init:SUCCESS [s1:SUCCESS s2:SUCCESS] [s3:PROGRESS s4:PROGRESS]',
  ],
  [
    'a plan that is retried',
    new Journal().initial().plan(1, 2, {}, RETRYING).plan(2, 2).step(2, both).history(),
    'init:SUCCESS [s1:RETRY s2:SUCCESS]',
  ],
  [
    'a dead plan',
    new Journal().initial().plan(1, 2, {}, FAILED).plan(2, 2, {}, CANCELED).history('RUN_FAILED'),
    'init:SUCCESS [s1:FAILED s2:CANCELED]',
  ],
  [
    'a result whose delivery is retried before the group is done',
    parallel().step(1, both, RETRYING).history(),
    'init:SUCCESS [s1:SUCCESS s2:PROGRESS] next(msg_4:RETRY)',
  ],
  [
    'results without plans',
    new Journal().initial().step(2, both).step(1, both, IN_FLIGHT).history(),
    'init:SUCCESS [s1:SUCCESS s2:SUCCESS] next(msg_3:PROGRESS)',
  ],
  [
    'a repeated result',
    new Journal().initial().step(1).add('step', 'h9', { stepId: 1, stepName: 'again' }).history(),
    'init:SUCCESS s1:SUCCESS',
  ],
  [
    'kinds of steps side by side',
    new Journal()
      .initial()
      .plan(1, 3)
      .plan(2, 3)
      .plan(3, 3)
      .wait(1, { concurrent: 3 })
      .call(2, IN_FLIGHT, { concurrent: 3 })
      .invoke(3, { concurrent: 3 })
      .history(),
    'init:SUCCESS [s1:PROGRESS s2:PROGRESS s3:PROGRESS]',
  ],

  // Calls.
  ['a call in flight', new Journal().initial().call(1, IN_FLIGHT).history(), 'init:SUCCESS s1:PROGRESS'],
  ['a call that is retried', new Journal().initial().call(1, RETRYING).history(), 'init:SUCCESS s1:RETRY'],
  ['a dead call, which is a result', new Journal().initial().call(1, FAILED).history(), 'init:SUCCESS s1:PROGRESS'],
  [
    'the result of a call in flight',
    new Journal().initial().call(1, FAILED).callback(500, IN_FLIGHT).history(),
    'init:SUCCESS s1:PROGRESS',
  ],
  [
    'the result of a call that is retried',
    new Journal().initial().call(1, DELIVERED).callback(200, RETRYING).history(),
    'init:SUCCESS s1:RETRY',
  ],
  [
    'the result of a call that cannot be delivered',
    new Journal().initial().call(1, DELIVERED).callback(200, FAILED).history('RUN_FAILED'),
    'init:SUCCESS s1:FAILED',
  ],
  [
    'a call that is done',
    new Journal().initial().call(1, FAILED).callback(500, DELIVERED).step(1, { stepType: 'Call' }, IN_FLIGHT).history(),
    'init:SUCCESS s1:SUCCESS next(msg_4:PROGRESS)',
  ],
  [
    'a call that a cancel ended',
    new Journal().initial().call(1, CANCELED).history('RUN_CANCELED'),
    'init:SUCCESS s1:CANCELED',
  ],

  // Waits and invocations.
  ['a wait', new Journal().initial().wait(1).history(), 'init:SUCCESS s1:PROGRESS'],
  [
    'a wait whose delivery has no response yet',
    new Journal().initial(IN_FLIGHT).wait(1).history(),
    'init:SUCCESS s1:PROGRESS',
  ],
  [
    'a wait that was notified',
    new Journal().initial().wait(1).step(1, { stepType: 'Wait', waitTimeout: false }, IN_FLIGHT).history(),
    'init:SUCCESS s1:SUCCESS next(msg_3:PROGRESS)',
  ],
  ['a wait that a cancel ended', new Journal().initial().wait(1).history('RUN_CANCELED'), 'init:SUCCESS s1:CANCELED'],
  ['an invocation', new Journal().initial().invoke(1).history(), 'init:SUCCESS s1:PROGRESS'],
  [
    'an invocation continues when its run has failed elsewhere',
    new Journal().initial().plan(1, 2).plan(2, 2, {}, FAILED).invoke(1, both).history('RUN_FAILED'),
    'init:SUCCESS [s1:PROGRESS s2:FAILED]',
  ],
  [
    'an invocation whose end comes after its parent failed',
    new Journal()
      .initial()
      .plan(1, 2)
      .plan(2, 2, {}, FAILED)
      .invoke(1, both)
      .step(1, { stepType: 'Invoke', ...both }, { failures: [] })
      .history('RUN_FAILED'),
    'init:SUCCESS [s1:SUCCESS s2:FAILED]',
  ],
  [
    'an invocation of a run that was cancelled',
    new Journal().initial().invoke(1).history('RUN_CANCELED'),
    'init:SUCCESS s1:CANCELED',
  ],
  [
    'a plan that fails after its wait was registered',
    new Journal().initial().plan(1, 2, {}, FAILED).plan(2, 2, {}, CANCELED).wait(1, both).history('RUN_FAILED'),
    'init:SUCCESS [s1:FAILED s2:CANCELED]',
  ],
])('%s', ([, history, shape]) => {
  expect(shapeOf(history)).toBe(shape);
});

test('a call is one step, with its request and its response', () => {
  const journal = new Journal()
    .initial()
    .call(1, FAILED)
    .callback(503, DELIVERED)
    .step(1, { stepType: 'Call', out: '{"status":503}' });
  const [, group] = runLogOf(journal.history(), NOW).groups;
  expect(group?.steps).toHaveLength(1);
  expect(group?.steps[0]).toMatchObject({
    state: 'STEP_SUCCESS',
    failures: [],
    info: {
      stepId: 1,
      callType: 'step',
      messageId: 'msg_4',
      createdAtMs: T0 + 2,
      call: {
        url: 'https://third.example/api',
        method: 'PUT',
        header: { 'X-Sent': ['1'] },
        body: Buffer.from('question'),
        response: { status: 503, header: { 'X-Got': ['2'] }, body: Buffer.from('answer') },
      },
    },
  });
});

test('a call has the call type of its latest message', () => {
  const callTypes = [
    new Journal().initial().call(1, IN_FLIGHT),
    new Journal().initial().call(1, DELIVERED).callback(200, IN_FLIGHT),
  ].map((journal) => runLogOf(journal.history(), NOW).groups[1]?.steps[0]?.info.callType);
  expect(callTypes).toEqual(['toCallback', 'fromCallback']);
});

test('a planned step has a target step only until it has a result', () => {
  const planned = runLogOf(parallel().history(), NOW).groups[1]?.steps[0]?.info;
  const done = runLogOf(parallel().step(1, both).history(), NOW).groups[1]?.steps[0]?.info;
  expect(planned).toMatchObject({ stepId: 1, targetStep: 1, concurrent: 2, messageId: 'msg_2' });
  expect(done).toMatchObject({ stepId: 1, concurrent: 2, messageId: 'msg_4', createdAtMs: T0 + 2 });
  expect(done).not.toHaveProperty('targetStep');
});

test('a wait has its timeout and deadline, whether it timed out, and its decoded data', () => {
  const out = Buffer.from('{"a":"é"}');
  const notified = new Journal()
    .initial()
    .wait(1)
    .step(1, { stepType: 'Wait', waitEventId: 'e1', waitTimeout: false, out: out.toString('base64') });
  const timedOut = new Journal()
    .initial()
    .wait(1)
    .step(1, { stepType: 'Wait', waitEventId: 'e1', waitTimeout: true, out: undefined });
  const [first, second] = [notified, timedOut].map(
    (journal) => runLogOf(journal.history(), NOW).groups[1]?.steps[0]?.info,
  );
  expect(first?.out).toEqual(out);
  expect(first?.wait).toEqual({ eventId: 'e1', timeout: '1m', deadlineMs: T0 + 60_000 });
  expect(second).not.toHaveProperty('out');
  expect(second?.wait).toEqual({ eventId: 'e1', timeout: '1m', deadlineMs: T0 + 60_000, isTimeout: true });
});

test('an invocation shows the run that it started, with its payload', () => {
  const child = { ...new Journal().initial().entries[0]?.message };
  const journal = new Journal().initial().invoke(1, {}, child as NonNullable<RunHistory['entries'][number]['child']>);
  const info = runLogOf(journal.history(), NOW).groups[1]?.steps[0]?.info;
  expect(info?.invoked).toMatchObject({ runId: 'wfr_child', url: 'https://app.example/child', createdAtMs: T0 + 50 });
  expect(info?.invoked?.first?.body).toEqual(Buffer.from('payload'));
});

test.for<[members: Record<string, unknown>, expected: Record<string, number>]>([
  [{ sleepFor: 10 }, { sleepForMs: 10_000 }],
  [{ sleepFor: 0.5 }, { sleepForMs: 500 }],
  [{ sleepFor: '1m30s' }, { sleepForMs: 90_000 }],
  [{ sleepUntil: T0 / 1000 + 0.25 }, { sleepUntilMs: T0 + 250 }],
])('a sleep of %j is reported in milliseconds', ([members, expected]) => {
  const journal = new Journal().initial().step(1, { stepType: 'SleepFor', ...members });
  expect(runLogOf(journal.history(), NOW).groups[1]?.steps[0]?.info).toMatchObject(expected);
});

test('a sleep until a time out of range has no end time', () => {
  const journal = new Journal().initial().step(1, { stepType: 'SleepUntil', sleepUntil: 1e13 });
  expect(runLogOf(journal.history(), NOW).groups[1]?.steps[0]?.info).not.toHaveProperty('sleepUntilMs');
});

test('a failing step is shown with its attempts, and with its name if the response contains it', () => {
  const failures = [failure('500 Internal Server Error', 500, { 'Upstash-Error-Step-Name': ['charge'] })];
  const progress: DeliveryProgress = { pending: { dueAtMs: NOW + 5_000, isInFlight: false }, failures };
  const [step] = runLogOf(new Journal().initial(progress).history(), NOW).next;
  expect(step).toMatchObject({ state: 'STEP_RETRY', stepName: 'charge', failures, nextDeliveryAtMs: NOW + 5_000 });
});

test('a parked step shows the reason once, the earlier failures, and its next delivery', () => {
  const [failed, parked] = [failure('500', 500), failure('This run has step 1, and the code has none.', 409)];
  const progress: DeliveryProgress = {
    pending: { dueAtMs: NOW + 5_000, isInFlight: false },
    failures: [failed],
    parked,
  };
  const expected = { state: 'STEP_PARKED', failures: [failed, parked], nextDeliveryAtMs: NOW + 5_000 };
  const step = runLogOf(new Journal().initial().step(1, {}, progress).history(), NOW);
  expect(step.next).toMatchObject([expected]);
  const plan = runLogOf(new Journal().initial().plan(1, 2, {}, progress).plan(2, 2).history(), NOW);
  expect(plan.groups[1]?.steps[0]).toMatchObject(expected);
  const isInFlight: DeliveryProgress = { ...progress, pending: { dueAtMs: NOW, isInFlight: true } };
  expect(runLogOf(new Journal().initial(isInFlight).history(), NOW).next).toMatchObject([{ state: 'STEP_PROGRESS' }]);
});

test('a retried plan shows its failures and its next delivery', () => {
  const [, group] = runLogOf(new Journal().initial().plan(1, 2, {}, RETRYING).plan(2, 2).history(), NOW).groups;
  expect(group?.steps[0]).toMatchObject({ failures: RETRYING.failures, nextDeliveryAtMs: NOW + 5_000 });
});

test('a failed run shows the response that failed it', () => {
  const log = runLogOf(new Journal().initial().call(1, FAILED).callback(200, FAILED).history('RUN_FAILED'), NOW);
  expect(log.failure).toEqual(FAILED.failures[0]);
  expect(runLogOf(new Journal().initial().history('RUN_CANCELED'), NOW)).not.toHaveProperty('failure');
});

test('a workflow without a failure function has none in its log', () => {
  const { message } =
    new Journal().initial(undefined, { settings: { run: { ...PART, callType: 'failureCall' } } }).entries[0] ?? {};
  if (!message) throw new Error('there is no message');
  const history = new Journal().initial(FAILED).history('RUN_FAILED');
  const told = runLogOf({ ...history, failureFunction: { state: 'success', message, ...DELIVERED } }, NOW);
  const untold = runLogOf({ ...history, failureFunction: { state: 'none', message, ...DELIVERED } }, NOW);
  expect(told.failureFunction?.state).toBe('success');
  expect(untold).not.toHaveProperty('failureFunction');
});

test('a run is found by the state of a step, and of the next one', () => {
  const log = runLogOf(new Journal().initial(RETRYING).history(), NOW);
  expect(hasStepIn(log, new Set(['STEP_RETRY']))).toBe(true);
  expect(hasStepIn(log, new Set(['STEP_SUCCESS']))).toBe(true);
  expect(hasStepIn(log, new Set(['STEP_FAILED', 'STEP_CANCELED']))).toBe(false);
});

test.for<RunState>(['RUN_STARTED', 'RUN_FAILED', 'RUN_CANCELED', 'RUN_SUCCESS'])(
  'the last group of a run in %s is next only when something comes next',
  (state) => {
    const { next } = runLogOf(new Journal().initial().step(1).history(state), NOW);
    expect(next).toEqual([]);
  },
);
