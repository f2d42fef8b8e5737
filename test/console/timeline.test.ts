/** The timeline of a run, from recorded responses of the API for runs of the official client. */
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import type { RunEvent, WorkflowRun } from '../../console/src/generated/interface.ts';
import { rowsOf } from '../../console/src/screens/runs/rows.ts';
import { type Bar, barsOf } from '../../console/src/screens/runs/timeline.ts';

interface RecordedRun {
  run: WorkflowRun;
  /** Newest first. */
  events: RunEvent[];
}

function recorded(name: string): RecordedRun {
  return JSON.parse(readFileSync(new URL(`recorded/${name}-run.json`, import.meta.url), 'utf8')) as RecordedRun;
}

/** Access to the bars by name; times are relative to the start of the run. */
function timelineOf({ run, events }: RecordedRun, nowMs = Number.MAX_SAFE_INTEGER) {
  const startedMs = run.workflowRunCreatedAt;
  const bars = barsOf(run, events, nowMs);
  return {
    names: bars.map(({ name }) => name),
    bar: (name: string): Bar => {
      const found = bars.find((each) => each.name === name);
      if (!found) throw new Error(`no bar ${name}`);
      return found;
    },
    segments: (name: string) =>
      (bars.find((each) => each.name === name)?.segments ?? []).map(
        ({ kind, fromMs, toMs }) => `${kind} ${fromMs - startedMs}-${toMs - startedMs}`,
      ),
  };
}

/** The state of a run at an earlier time: without its result and later events. */
function asOf({ run, events }: RecordedRun, atMs: number): RecordedRun {
  const { workflowRunCompletedAt: _, workflowRunResponse: __, ...rest } = run;
  const earlier = events.filter(({ time }) => time <= run.workflowRunCreatedAt + atMs);
  return { run: { ...rest, workflowState: 'RUN_STARTED' }, events: earlier };
}

describe('a run with a parallel group', () => {
  const parallel = recorded('parallel');

  it('shows each failed attempt of a step, and the delay before the next as a wait', () => {
    expect(timelineOf(parallel).segments('reserve stock')).toEqual([
      'queued 271-577',
      'failed 577-779',
      'waits 779-1581',
      'failed 1581-1713',
      'waits 1713-2556',
      'run 2556-2753',
    ]);
  });

  it('shows the error and the response of each attempt', () => {
    const { attempts } = timelineOf(parallel).bar('reserve stock');
    expect(attempts.map(({ error, status }) => [error, status])).toEqual([
      ['500 Internal Server Error', 500],
      ['500 Internal Server Error', 500],
      [undefined, undefined],
    ]);
    expect(attempts[0]?.response).toContain('the warehouse is busy (try 1)');
  });

  it('gives only the steps of the group a position in the group', () => {
    const bars = barsOf(parallel.run, parallel.events, 0);
    expect(bars.map(({ groupPosition }) => groupPosition)).toEqual([
      ...[undefined, undefined, undefined],
      ...['first', 'inner', 'inner', 'inner', 'last'],
      ...[undefined, undefined],
    ]);
  });

  it('starts the steps of the group at the same time', () => {
    const { bar } = timelineOf(parallel);
    const names = ['ask for the price', 'wait for the payment', 'have it packed', 'cool off', 'check address'];
    expect(new Set(names.map((name) => bar(name).fromMs)).size).toBe(1);
  });

  it('shows a parallel sleep as a wait before its execution, and a sequential one after it', () => {
    const { segments } = timelineOf(parallel);
    expect(segments('cool off')).toEqual(['waits 2854-4854', 'queued 4854-5104', 'run 5104-5223']);
    expect(segments('give time to reconsider')).toEqual(['run 6294-6339', 'waits 6339-9339']);
  });

  it('shows the wait for an event until its notification', () => {
    expect(timelineOf(parallel).segments('wait for the payment')).toEqual(['run 2854-3093', 'waits 3093-6294']);
  });

  it('starts the step after the group at the last result of the group', () => {
    expect(timelineOf(parallel).bar('give time to reconsider').fromMs).toBe(parallel.run.workflowRunCreatedAt + 6294);
  });

  it('shows an unfinished step until now', () => {
    const earlier = asOf(parallel, 5_500);
    const nowMs = parallel.run.workflowRunCreatedAt + 6_000;
    const { run } = earlier;
    for (const step of run.steps.flatMap((group) => group.steps)) {
      if (step.stepName === 'wait for the payment') step.state = 'STEP_PROGRESS';
    }
    expect(timelineOf(earlier, nowMs).segments('wait for the payment')).toEqual(['run 2854-3093', 'waits 3093-6000']);
  });
});

describe('a run of single steps', () => {
  const sequential = recorded('sequential');

  it('shows the attempts of a call, which the server makes itself', () => {
    const { bar, segments } = timelineOf(sequential);
    expect(segments('ask nobody')).toEqual(
      expect.arrayContaining(['failed 510-557', 'waits 557-1058', 'failed 1058-1079']),
    );
    expect(bar('ask nobody').attempts.map(({ purpose, number, error }) => [purpose, number, error])).toEqual([
      ['step', 1, undefined],
      ['request', 1, 'connection refused'],
      ['request', 2, 'connection refused'],
      ['response', 1, undefined],
    ]);
  });

  it('shows the duration of an invoked run as a wait, and names the run', () => {
    const { bar, segments } = timelineOf(sequential);
    expect(segments('pack it')).toEqual(['run 1117-1197', 'waits 1197-2176']);
    expect(bar('pack it').child?.id).toBe('wfr_CQYAjE6xeE5CqLzMnn1T8');
  });

  it('ends a wait without a notification at its timeout', () => {
    expect(timelineOf(sequential).segments('wait in vain')).toEqual(['run 5054-5076', 'waits 5076-6078']);
  });

  it('has a bar for each step even after the events have expired', () => {
    const { run } = sequential;
    const bars = barsOf(run, [], 0);
    expect(bars).toHaveLength(barsOf(run, sequential.events, 0).length);
    for (const { fromMs, toMs } of bars) {
      expect(fromMs).toBeGreaterThanOrEqual(run.workflowRunCreatedAt);
      expect(toMs).toBeGreaterThanOrEqual(fromMs);
      expect(toMs).toBeLessThanOrEqual(run.workflowRunCompletedAt ?? 0);
    }
  });
});

describe('a failed run', () => {
  it('shows the attempts of the failed step, and those of the failure callback after the end', () => {
    const failed = recorded('failed');
    const { names, bar, segments } = timelineOf(failed);
    expect(names.slice(-2)).toEqual(['pay out', 'failure callback']);
    expect(bar('pay out').state).toBe('STEP_FAILED');
    expect(segments('pay out').filter((segment) => segment.startsWith('failed'))).toHaveLength(2);
    expect(bar('failure callback').fromMs).toBeGreaterThanOrEqual(failed.run.workflowRunCompletedAt ?? Infinity);
    expect(bar('failure callback').attempts.every(({ error }) => error !== undefined)).toBe(true);
  });

  it('marks the reused steps in the run that resumes it', () => {
    const { names, bar } = timelineOf(recorded('resumed'));
    expect(names).toEqual(['init', 'take it back', 'settle', 'pay out']);
    expect(names.map((name) => bar(name).isReused)).toEqual([false, true, true, false]);
    expect(bar('take it back').segments).toEqual([]);
  });
});

describe('the rows', () => {
  const sequential = recorded('sequential');
  const child = recorded('resumed');
  const rows = (expanded: string[]) =>
    rowsOf(sequential, 0, new Set(expanded), (id) => (id === 'wfr_CQYAjE6xeE5CqLzMnn1T8' ? child : undefined));

  it('have the steps of an expanded child run below the step that invoked it', () => {
    expect(rows([]).every(({ depth }) => depth === 0)).toBe(true);
    const expanded = rows(['step-3']);
    const at = expanded.findIndex(({ key }) => key === 'step-3');
    expect(expanded.slice(at + 1, at + 6).map(({ bar, depth }) => [bar.name, depth])).toEqual([
      ['init', 1],
      ['take it back', 1],
      ['settle', 1],
      ['pay out', 1],
      ['wait for go', 0],
    ]);
  });

  it('have distinct keys even if parent and child have steps with the same number', () => {
    const keys = rows(['step-3']).map(({ key }) => key);
    expect(new Set(keys).size).toBe(keys.length);
  });
});
