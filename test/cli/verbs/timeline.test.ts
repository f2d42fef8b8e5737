import { describe, expect, it } from 'vitest';
import { durationOf, rowOf, timelineOf } from '../../../src/cli/runs/timeline.ts';
import type { RunView } from '../../../src/cli/runs/view.ts';

const T0 = Date.UTC(2026, 0, 31, 13, 5, 9, 123);

function runOf(changes: Partial<RunView> = {}): RunView {
  return {
    workflowRunId: 'wfr_a',
    workflowUrl: 'https://app.example/wf',
    workflowState: 'RUN_STARTED',
    workflowRunCreatedAt: T0,
    steps: [],
    ...changes,
  };
}

const sequential = (...steps: RunView['steps'][number]['steps']) =>
  steps.map((step) => ({ type: 'sequential', steps: [step] }));
const shown = (run: RunView, color = false) => timelineOf(run, { nowMs: T0 + 65_000, color });

describe('the timeline of a run', () => {
  it('has a line for each step, with its mark, name, kind, state and time, and what says most of it', () => {
    const run = runOf({
      workflowState: 'RUN_FAILED',
      workflowRunCompletedAt: T0 + 3_200,
      labels: ['spring', 'b'],
      dlqId: '7-8',
      failureFunction: { state: 'CALLBACK_SUCCESS' },
      invoker: { workflowRunId: 'wfr_parent' },
      steps: [
        ...sequential(
          { stepName: 'init', stepType: 'Initial', state: 'STEP_SUCCESS', createdAt: T0 },
          { stepName: 'nap', stepType: 'SleepFor', state: 'STEP_SUCCESS', createdAt: T0 + 1, sleepFor: 90_000 },
        ),
        {
          type: 'parallel',
          steps: [
            {
              ...{ stepName: 'fetch', stepType: 'Call', state: 'STEP_SUCCESS', createdAt: T0 + 2 },
              ...{ callMethod: 'GET', callUrl: 'https://api.example/', callResponseStatus: 404 },
            },
            { stepName: 'paid', stepType: 'Wait', state: 'STEP_CANCELED', waitEventId: 'order-1', createdAt: T0 + 2 },
          ],
        },
        {
          type: 'next',
          steps: [
            {
              state: 'STEP_FAILED',
              retries: 1,
              errors: [{ error: 'connection refused' }, { error: '500 Internal Server Error' }],
            },
          ],
        },
      ],
    });
    expect(shown(run)).toBe(
      [
        '✗  wfr_a  FAILED',
        '   https://app.example/wf',
        '   started 2026-01-31 13:05 UTC, took 3.2s, labels spring, b, invoked by wfr_parent',
        '   in the DLQ as 7-8, failure callback success',
        '   failed: 500 Internal Server Error',
        '',
        '   ✓  init         Initial   SUCCESS   13:05:09.123',
        '   ✓  nap          SleepFor  SUCCESS   13:05:09.124  +1ms  for 1m 30s',
        '│  ✓  fetch        Call      SUCCESS   13:05:09.125  +1ms  GET https://api.example/, status 404',
        '│  –  paid         Wait      CANCELED  13:05:09.125  +1ms  event order-1',
        '   ✗  (next step)            FAILED                        2 of 2 attempts failed, 500 Internal Server Error',
        '',
      ].join('\n'),
    );
  });

  const failedWith = (body: string) =>
    shown(
      runOf({
        workflowState: 'RUN_FAILED',
        steps: [
          { type: 'next', steps: [{ state: 'STEP_FAILED', errors: [{ error: '500 Internal Server Error', body }] }] },
        ],
      }),
    )
      .split('\n')
      .slice(3, -3);

  it('says why the run failed: the message of the error, and where it was thrown', () => {
    const stack = ['Error: no money', '    at pay (app.ts:7:9)', '', 'at b', 'at c', 'at d'].join('\n');
    expect(failedWith(JSON.stringify({ error: 'Error', message: 'no money', stack }))).toEqual([
      '   failed: 500 Internal Server Error, Error: no money',
      ...['Error: no money', '    at pay (app.ts:7:9)', 'at b', 'at c'].map((line) => `   | ${line}`),
    ]);
  });

  it('shows the first lines of an answer that is no error of the library, and lets nothing of it steer the terminal', () => {
    expect(failedWith(`<h1>Bad\u001B[31m gateway</h1>\r\n\n${'x'.repeat(500)}`)).toEqual([
      '   failed: 500 Internal Server Error',
      '   | <h1>Bad [31m gateway</h1>',
      `   | ${'x'.repeat(110)}…`,
    ]);
    expect(failedWith('')).toEqual(['   failed: 500 Internal Server Error']);
  });

  it('shows what the run returned, and what its steps recorded, each in one line', () => {
    const run = runOf({
      workflowState: 'RUN_SUCCESS',
      workflowRunResponse: '{"total":\n12}',
      steps: sequential(
        { stepName: 'price', state: 'STEP_SUCCESS', createdAt: T0, out: 'y'.repeat(100) },
        { stepName: 'call', state: 'STEP_SUCCESS', createdAt: T0 + 1_500, callResponseBody: 'fine', out: 'not this' },
      ),
    });
    expect(shown(run)).toContain('   returned {"total": 12}\n');
    expect(shown(run)).toContain(`  → ${'y'.repeat(60)}…\n`);
    expect(shown(run)).toContain('  +1.5s  → fine\n');
  });

  it('names the run that has taken its place, and the one whose place it has', () => {
    const run = runOf({ predecessor: { workflowRunId: 'wfr_before' }, successor: { workflowRunId: 'wfr_after' } });
    expect(shown(run)).toContain('   retry of wfr_before\n   retried as wfr_after\n');
  });

  it('says what has changed in the code of a run that is parked, and when it is tried again', () => {
    const errors = [
      { error: 'once' },
      { error: "This run has step 1 'a' (Run), and the code has 'b' (Run) there now." },
    ];
    const run = runOf({
      steps: [{ type: 'next', steps: [{ state: 'STEP_PARKED', retries: 3, errors, nextDeliveryTime: T0 + 60_000 }] }],
    });
    expect(shown(run)).toMatch(
      /‖ {2}\(next step\) .* PARKED .* This run has step 1 'a' \(Run\), .* now\., next attempt at /,
    );
    expect(shown(run)).not.toContain('attempts failed');
  });

  it('says what a run that goes on waits for', () => {
    const until = T0 + 3_600_000;
    const run = runOf({
      steps: sequential(
        { stepName: 'paid', stepType: 'Wait', state: 'STEP_PROGRESS', waitEventId: 'e', waitTimeoutDeadline: until },
        { stepName: 'again', state: 'STEP_RETRY', retries: 3, errors: [{ error: 'no' }], nextDeliveryTime: until },
        { stepName: 'child', stepType: 'Invoke', state: 'STEP_PROGRESS', invokedWorkflowRunId: 'wfr_c' },
        { stepName: 'over', stepType: 'Wait', state: 'STEP_SUCCESS', waitEventId: 'e', waitTimeout: true },
        { stepName: 'dawn', stepType: 'SleepUntil', state: 'STEP_PROGRESS', sleepUntil: until },
      ),
    });
    const text = shown(run);
    expect(text).toContain('started 2026-01-31 13:05 UTC, running for 1m 5s');
    expect(text).toMatch(/paid .* event e, until 2026-01-31 14:05:09\n/);
    expect(text).toMatch(/again .* 1 of 4 attempts failed, no, next attempt at 2026-01-31 14:05:09\n/);
    expect(text).toMatch(/child .* run wfr_c\n/);
    expect(text).toMatch(/over .* event e, timed out\n/);
    expect(text).toMatch(/dawn .* until 2026-01-31 14:05:09\n/);
  });

  it('colours marks and nothing else, and lets no name steer the terminal', () => {
    const run = runOf({ steps: sequential({ stepName: '\u001B[2Jevil\u202E', state: 'STEP_SUCCESS' }) });
    expect(shown(run, true).split('\u001B[')).toHaveLength(1 + 4);
    expect(shown(run, true)).toContain('\u001B[32m✓\u001B[0m');
    for (const steering of ['\u001B', '\u202E']) expect(shown(run)).not.toContain(steering);
  });

  it('is one row in a list, where the next step does not count', () => {
    const next = { type: 'next', steps: [{ state: 'STEP_RETRY' }] };
    const run = runOf({ steps: [...sequential({ state: 'STEP_SUCCESS' }), next], workflowRunCompletedAt: T0 + 250 });
    expect(rowOf(run, T0)).toEqual(['wfr_a', 'STARTED', '2026-01-31 13:05', '250ms', '1', 'https://app.example/wf']);
  });
});

it.each([
  [-5, '0ms'],
  [999, '999ms'],
  [1_000, '1s'],
  [59_940, '59.9s'],
  [60_000, '1m'],
  [3_599_000, '59m 59s'],
  [7_500_000, '2h 5m'],
  [86_400_000, '1d'],
  [90_000_000, '1d 1h'],
])('%d ms are %s', (ms, text) => {
  expect(durationOf(ms)).toBe(text);
});
