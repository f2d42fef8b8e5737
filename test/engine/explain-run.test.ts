/** P14: one sentence explains why an active run does not continue. */
import { expect, test } from 'vitest';
import type { LiveMessage } from '../../src/engine/lists/unfinished.ts';
import { explainActive, explainEnded, liveEntriesOf } from '../../src/engine/runs/logs/explain.ts';
import type { LoggedRun, RunHistory } from '../../src/workflow/history.ts';
import type { RunState } from '../../src/workflow/model.ts';
import { runLogOf } from '../../src/workflow/run-log.ts';
import { DELIVERED, dueIn, failure, IN_FLIGHT, Journal, NOW, RETRYING } from '../workflow/histories.ts';
import { message } from './fixtures.ts';

/** The states of unfinished messages in no lane, with the number of retries made. */
function explained(history: RunHistory, state?: LiveMessage['state']) {
  const live = new Map(
    liveEntriesOf(history).map((entry): [string, LiveMessage] => {
      const { dueAtMs = 0, isInFlight = false } = entry.pending ?? {};
      const own = isInFlight ? { kind: 'claimed', claimedAtMs: dueAtMs } : { kind: 'due', dueAtMs };
      const shown = state ?? (own as LiveMessage['state']);
      const retried = entry.failures.length;
      return [entry.message.id, { message: message(), retried, cancelRequested: false, state: shown }];
    }),
  );
  return explainActive(history, live, NOW);
}

test.for<[title: string, history: RunHistory, reason: string, part: string]>([
  [
    'a first delivery under way',
    new Journal().initial(IN_FLIGHT).history(),
    'attempting',
    'Its first delivery: An attempt has been in flight',
  ],
  [
    'a delivery after a step',
    new Journal().initial().step(1, {}, IN_FLIGHT).history(),
    'attempting',
    'The delivery after step 1 (s1): ',
  ],
  ['a retry', new Journal().initial().step(1, {}, RETRYING).history(), 'retrying', 'Z: 500 Internal Server Error.'],
  ['a delayed start', new Journal().initial(dueIn(9_000)).history(), 'delayed', 'Its first delivery: '],
  [
    'a sleep',
    new Journal().initial().step(1, { stepType: 'SleepFor', sleepFor: 90 }, dueIn(9_000)).history(),
    'sleeping',
    'Sleeps in step 1 (s1) until 2027-',
  ],
  [
    'a sleep that is over',
    new Journal().initial().step(1, { stepType: 'SleepFor', sleepFor: 90 }, dueIn(-1)).history(),
    'due',
    'The delivery after step 1 (s1): Due',
  ],
  [
    'a plan',
    new Journal().initial().plan(1, 2, {}, IN_FLIGHT).plan(2, 2).history(),
    'attempting',
    'The delivery that executes step 1 (s1): ',
  ],
  [
    'a call',
    new Journal().initial().call(1, IN_FLIGHT).history(),
    'attempting',
    'The call of step 1 (s1) to https://third.example/api: ',
  ],
  [
    'the response of a call',
    new Journal().initial().call(1, DELIVERED).callback(200, RETRYING).history(),
    'retrying',
    'The delivery of the response to the call of step 1 (s1): ',
  ],
  ['a wait', new Journal().initial().wait(1).history(), 'waiting', 'Waits in step 1 (s1) for event e1, until 2027-'],
  [
    'an invocation',
    new Journal().initial().invoke(1).history(),
    'invoked',
    'for the end of run wfr_child, served by https://app.example/child',
  ],
  ['nothing', new Journal().initial().step(1).history(), 'stuck', 'Stuck: the endpoint responded'],
])('%s explains why a run waits', ([, history, reason, part]) => {
  const explanation = explained(history);
  expect(explanation.reason).toBe(reason);
  expect(explanation.sentence).toContain(part);
  expect(explanation.sentence).toMatch(/^[A-Z].*\.$/);
  expect(explanation).toMatchObject({ runId: 'wfr_a', others: 0 });
});

test.for<[title: string, step: Record<string, unknown>]>([
  ['after a step', {}],
  ['after a sleep', { stepType: 'SleepFor', sleepFor: 90 }],
])('a run parked %s is explained with the change of its code', ([, step]) => {
  const parked = failure('This run has step 1, and the code has none.', 409);
  const history = new Journal()
    .initial()
    .step(1, step, { ...dueIn(5_000), parked })
    .history();
  const [entry] = liveEntriesOf(history);
  const state = { kind: 'due', dueAtMs: NOW + 5_000 } as const;
  const live: LiveMessage = { message: message(), retried: 0, cancelRequested: false, isParked: true, state };
  const { reason, sentence, dueAtMs } = explainActive(history, new Map([[entry?.message.id ?? '', live]]), NOW);
  expect([reason, dueAtMs]).toEqual(['parked', NOW + 5_000]);
  expect(sentence).toContain('The delivery after step 1 (s1): This run has step 1, and the code has none. Parked');
});

test('a message that waits for a lane is explained with its key', () => {
  const history = new Journal().initial(dueIn(-1)).history();
  const key = { key: 'k', isPaused: true, inFlight: 0, waitListSize: 1, rateCount: 0, periodS: 1 };
  const state = { kind: 'flow', dueAtMs: NOW - 1, key } as unknown as LiveMessage['state'];
  expect(explained(history, state)).toMatchObject({ reason: 'key_paused', flowControlKey: 'k' });
});

test('the explanation names the first cause and counts the others', () => {
  const journal = new Journal().initial().plan(1, 3).plan(2, 3).plan(3, 3, {}, dueIn(5_000)).wait(1, { concurrent: 3 });
  const history = journal.call(2, IN_FLIGHT, { concurrent: 3 }).history();
  expect(explained(history)).toMatchObject({ reason: 'attempting', stepId: 2, others: 2 });
});

test('the wait that ends first is named', () => {
  expect(explained(new Journal().initial().wait(1).invoke(2).history())).toMatchObject({
    ...{ reason: 'waiting', eventId: 'e1', stepType: 'Wait', others: 1 },
  });
});

test.for<[title: string, state: RunState, changes: Partial<LoggedRun>, reason: string, sentence: RegExp]>([
  ['returned', 'RUN_SUCCESS', {}, 'succeeded', /^Succeeded at 2027-.*Z\.$/],
  ['was cancelled', 'RUN_CANCELED', {}, 'cancelled', /^Cancelled at 2027-.*Z\.$/],
  ['failed', 'RUN_FAILED', { dlqId: '7-8' }, 'failed', /^Failed at .*Z: [^.]+\. It is in the DLQ as 7-8\.$/],
  ['failed and was deleted', 'RUN_FAILED', {}, 'failed', /\. It is no longer in the DLQ\.$/],
])('a run that %s is explained, with its time', ([, state, changes, reason, sentence]) => {
  const history = new Journal()
    .initial()
    .step(1, {}, DELIVERED)
    .history(state, { completedAtMs: NOW, ...changes });
  const explanation = explainEnded(runLogOf(history, NOW));
  expect(explanation).toMatchObject({ reason, runId: 'wfr_a', others: 0, atMs: NOW });
  expect(explanation.sentence).toMatch(sentence);
  expect(explanation.dlqId).toBe(changes.dlqId);
});

test('a failed run names the run that replaced it', () => {
  const history = new Journal().initial().history('RUN_FAILED', { completedAtMs: NOW });
  history.run.config.successor = { id: 'wfr_b', createdAtMs: NOW };
  expect(explainEnded(runLogOf(history, NOW)).sentence).toContain('It has been replaced by run wfr_b.');
});
