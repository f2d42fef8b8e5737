/** The timeline of a run, from what it reads of answers that the interface gave for runs of the official client. */
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import type { RunEvent, WorkflowRun } from '../../console/src/generated/interface.ts';
import { rowsOf } from '../../console/src/screens/runs/rows.ts';
import { type Bar, barsOf } from '../../console/src/screens/runs/timeline.ts';

interface Recorded {
  run: WorkflowRun;
  /** Newest first. */
  events: RunEvent[];
}

function recorded(name: string): Recorded {
  return JSON.parse(readFileSync(new URL(`recorded/${name}-run.json`, import.meta.url), 'utf8')) as Recorded;
}

/** The bars by name; times are relative to the beginning of the run. */
function shown({ run, events }: Recorded, nowMs = Number.MAX_SAFE_INTEGER) {
  const beganMs = run.workflowRunCreatedAt;
  const bars = barsOf(run, events, nowMs);
  return {
    names: bars.map(({ name }) => name),
    bar: (name: string): Bar => {
      const found = bars.find((each) => each.name === name);
      if (!found) throw new Error(`no bar ${name}`);
      return found;
    },
    stretches: (name: string) =>
      (bars.find((each) => each.name === name)?.segments ?? []).map(
        ({ kind, fromMs, toMs }) => `${kind} ${fromMs - beganMs}-${toMs - beganMs}`,
      ),
  };
}

/** What was known of a run at a moment: without the results and the events that came later. */
function asOf({ run, events }: Recorded, atMs: number): Recorded {
  const { workflowRunCompletedAt: _, workflowRunResponse: __, ...rest } = run;
  const earlier = events.filter(({ time }) => time <= run.workflowRunCreatedAt + atMs);
  return { run: { ...rest, workflowState: 'RUN_STARTED' }, events: earlier };
}

describe('a run with a parallel group', () => {
  const parallel = recorded('parallel');

  it('shows each failed attempt at a step, and hatches the delay before the next', () => {
    expect(shown(parallel).stretches('reserve stock')).toEqual([
      'queued 271-577',
      'failed 577-779',
      'waits 779-1581',
      'failed 1581-1713',
      'waits 1713-2556',
      'run 2556-2753',
    ]);
  });

  it('tells of each attempt its error and what the app answered', () => {
    const { attempts } = shown(parallel).bar('reserve stock');
    expect(attempts.map(({ error, status }) => [error, status])).toEqual([
      ['500 Internal Server Error', 500],
      ['500 Internal Server Error', 500],
      [undefined, undefined],
    ]);
    expect(attempts[0]?.response).toContain('the warehouse is busy (try 1)');
  });

  it('places the steps of the group in adjacent lanes, and no other step', () => {
    const bars = barsOf(parallel.run, parallel.events, 0);
    expect(bars.map(({ groupPosition: lane }) => lane)).toEqual([
      ...[undefined, undefined, undefined],
      ...['first', 'inner', 'inner', 'inner', 'last'],
      ...[undefined, undefined],
    ]);
  });

  it('lets the steps of the group begin at the same time', () => {
    const { bar } = shown(parallel);
    const names = ['ask for the price', 'wait for the payment', 'have it packed', 'cool off', 'check address'];
    expect(new Set(names.map((name) => bar(name).fromMs)).size).toBe(1);
  });

  it('hatches a parallel sleep before its execution, and a sequential one after it', () => {
    const { stretches } = shown(parallel);
    expect(stretches('cool off')).toEqual(['waits 2854-4854', 'queued 4854-5104', 'run 5104-5223']);
    expect(stretches('give time to reconsider')).toEqual(['run 6294-6339', 'waits 6339-9339']);
  });

  it('hatches the wait for an event until it came', () => {
    expect(shown(parallel).stretches('wait for the payment')).toEqual(['run 2854-3093', 'waits 3093-6294']);
  });

  it('goes on after the group with the step whose result came last', () => {
    expect(shown(parallel).bar('give time to reconsider').fromMs).toBe(parallel.run.workflowRunCreatedAt + 6294);
  });

  it('lets what is unfinished last until now', () => {
    const earlier = asOf(parallel, 5_500);
    const nowMs = parallel.run.workflowRunCreatedAt + 6_000;
    const { run } = earlier;
    for (const step of run.steps.flatMap((group) => group.steps)) {
      if (step.stepName === 'wait for the payment') step.state = 'STEP_PROGRESS';
    }
    expect(shown(earlier, nowMs).stretches('wait for the payment')).toEqual(['run 2854-3093', 'waits 3093-6000']);
  });
});

describe('a run of single steps', () => {
  const sequential = recorded('sequential');

  it('shows the attempts of a call, which the server makes itself', () => {
    const { bar, stretches } = shown(sequential);
    expect(stretches('ask nobody')).toEqual(
      expect.arrayContaining(['failed 510-557', 'waits 557-1058', 'failed 1058-1079']),
    );
    expect(bar('ask nobody').attempts.map(({ purpose, number, error }) => [purpose, number, error])).toEqual([
      ['step', 1, undefined],
      ['request', 1, 'connection refused'],
      ['request', 2, 'connection refused'],
      ['response', 1, undefined],
    ]);
  });

  it('hatches the time for which an invoked run runs, and names the run', () => {
    const { bar, stretches } = shown(sequential);
    expect(stretches('pack it')).toEqual(['run 1117-1197', 'waits 1197-2176']);
    expect(bar('pack it').child?.id).toBe('wfr_CQYAjE6xeE5CqLzMnn1T8');
  });

  it('ends a wait in vain with its timeout', () => {
    expect(shown(sequential).stretches('wait in vain')).toEqual(['run 5054-5076', 'waits 5076-6078']);
  });

  it('still has a bar for each step when the events are kept no more', () => {
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
  it('shows the attempts at the step that failed, and those of the failure callback after the end', () => {
    const failed = recorded('failed');
    const { names, bar, stretches } = shown(failed);
    expect(names.slice(-2)).toEqual(['pay out', 'failure callback']);
    expect(bar('pay out').state).toBe('STEP_FAILED');
    expect(stretches('pay out').filter((stretch) => stretch.startsWith('failed'))).toHaveLength(2);
    expect(bar('failure callback').fromMs).toBeGreaterThanOrEqual(failed.run.workflowRunCompletedAt ?? Infinity);
    expect(bar('failure callback').attempts.every(({ error }) => error !== undefined)).toBe(true);
  });

  it('marks in the run that goes on with it what it took over', () => {
    const { names, bar } = shown(recorded('resumed'));
    expect(names).toEqual(['init', 'take it back', 'settle', 'pay out']);
    expect(names.map((name) => bar(name).isReused)).toEqual([false, true, true, false]);
    expect(bar('take it back').segments).toEqual([]);
  });
});

describe('the rows', () => {
  const sequential = recorded('sequential');
  const child = recorded('resumed');
  const rows = (unfolded: string[]) =>
    rowsOf(sequential, 0, new Set(unfolded), (id) => (id === 'wfr_CQYAjE6xeE5CqLzMnn1T8' ? child : undefined));

  it('have the steps of a child run only where it is unfolded, below the step that invoked it', () => {
    expect(rows([]).every(({ depth }) => depth === 0)).toBe(true);
    const unfolded = rows(['step-3']);
    const at = unfolded.findIndex(({ key }) => key === 'step-3');
    expect(unfolded.slice(at + 1, at + 6).map(({ bar, depth }) => [bar.name, depth])).toEqual([
      ['init', 1],
      ['take it back', 1],
      ['settle', 1],
      ['pay out', 1],
      ['wait for go', 0],
    ]);
  });

  it('have a key each, also when parent and child have steps of the same number', () => {
    const keys = rows(['step-3']).map(({ key }) => key);
    expect(new Set(keys).size).toBe(keys.length);
  });
});
