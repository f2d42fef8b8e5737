import { describe, expect, it } from 'vitest';
import { judgeCheckpoints } from './checkpoint-checks.ts';
import type { DiaryLine } from './diary.ts';
import type { LibraryName } from './libraries.ts';
import type { LoggedRun } from './run-view.ts';

const ONE = JSON.stringify({ stepId: 1, stepName: 'one', stepType: 'Run', out: '"first"' });
const KEPT: DiaryLine = {
  kind: 'kept',
  call: '1',
  hand: 0,
  runId: 'wfr_1',
  step: 'one',
  messageId: 'msg_1',
  body: ONE,
};

function delivered(call: string, library: LibraryName = 'own'): DiaryLine {
  const of = { runId: 'wfr_1', createdAt: 1, program: 'sequence', messageId: 'msg_0', retried: 0 };
  return { kind: 'delivered', call, library, ...of };
}

function executed(call: string): DiaryLine {
  return { kind: 'executed', call, hand: 0, runId: 'wfr_1', step: 'one' };
}

function logged(results: [messageId: string, out: string][]): LoggedRun[] {
  const states = ['RUN_STARTED', 'RUN_SUCCESS'];
  const messages = new Map(results.map(([messageId]) => [messageId, ['CREATED', 'DELIVERED']]));
  const of = { createdAt: 1, program: 'sequence', states, response: undefined, invoker: undefined };
  return [{ runId: 'wfr_1', ...of, messages, results: new Map(results) }];
}

const SOUND = logged([['msg_1', '"first"']]);

describe('the checks of checkpoints', () => {
  it('find nothing wrong if a saved result is in the log, and count the events', () => {
    const lines: DiaryLine[] = [delivered('1'), executed('1'), delivered('2', 'official'), executed('2'), KEPT];
    const stopped: DiaryLine = { kind: 'stopped', call: '2', hand: 0, runId: 'wfr_1', reason: 'lost' };
    expect(judgeCheckpoints([...lines, stopped], SOUND)).toEqual({
      kept: 1,
      stopped: 1,
      executedAgain: 1,
      takeovers: 1,
      gone: [],
      executedInVain: [],
      executedAfterStop: [],
    });
  });

  it('report a saved result that is not in the log, or that differs there', () => {
    for (const runs of [[], logged([]), logged([['msg_1', '"second"']]), logged([['msg_2', '"first"']])]) {
      expect(judgeCheckpoints([delivered('1'), KEPT], runs).gone).toEqual(["'one' of wfr_1"]);
    }
  });

  it('report a step only if a call that started after its result was saved executes it', () => {
    const twins = [delivered('1'), delivered('2'), executed('1'), KEPT, executed('2')];
    expect(judgeCheckpoints(twins, SOUND).executedInVain).toEqual([]);
    const answerToCall = [delivered('1'), KEPT, delivered('2'), executed('2')];
    expect(judgeCheckpoints(answerToCall, SOUND).executedInVain).toEqual([]);
    const later = [delivered('1'), executed('1'), KEPT, delivered('2'), executed('2')];
    expect(judgeCheckpoints(later, SOUND).executedInVain).toEqual(["'one' of wfr_1"]);
  });

  it('report a step that a stopped handler executes, but not if another handler of the same call does', () => {
    const stopped: DiaryLine = { kind: 'stopped', call: '1', hand: 0, runId: 'wfr_1', reason: 'lost' };
    const twin: DiaryLine = { kind: 'executed', call: '1', hand: 1, runId: 'wfr_1', step: 'one' };
    expect(judgeCheckpoints([delivered('1'), stopped, twin], []).executedAfterStop).toEqual([]);
    expect(judgeCheckpoints([delivered('1'), stopped, executed('1')], []).executedAfterStop).toEqual([
      "'one' of wfr_1",
    ]);
  });
});
