import { describe, expect, it } from 'vitest';
import type { DiaryLine } from './diary.ts';
import { judgeJournals } from './journal-checks.ts';
import type { ProgramName } from './programs.ts';
import { RunBook } from './run-book.ts';
import { judgeRuns, type RunVerdict } from './run-checks.ts';
import type { DeadRun, LoggedRun } from './run-view.ts';

const LISTS = ['lost', 'unexpected', 'notEndedOnce', 'endedWrongly', 'returnedWrongly', 'failuresNotTold'] as const;
const NEWS = 'news for tag-1#00000000aa';

interface Case {
  program?: ProgramName;
  /** The server's view of the run `wfr_1`; undefined if the server does not know the run. */
  logged?: Partial<LoggedRun> | undefined;
  more?: LoggedRun[];
  dead?: DeadRun[];
  lines?: DiaryLine[];
}

function loggedRun(more: Partial<LoggedRun>): LoggedRun {
  const messages = new Map([['msg_1', ['CREATED', 'DELIVERED']]]);
  const states = ['RUN_STARTED', 'RUN_SUCCESS'];
  return {
    runId: 'wfr_1',
    createdAt: 1,
    program: 'waits',
    states,
    response: undefined,
    invoker: undefined,
    messages,
    results: new Map(),
    ...more,
  };
}

const base64 = (value: unknown) =>
  Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64');

/** A delivery with two recorded steps. */
const DELIVERED: DiaryLine = {
  kind: 'delivered',
  call: '1-1',
  library: 'own',
  runId: 'wfr_1',
  createdAt: 1,
  program: 'waits',
  messageId: 'msg_2',
  retried: 0,
  journal: [
    { messageId: 'msg_0', callType: 'step', body: base64({ tag: 'tag-1', third: '' }) },
    {
      messageId: 'msg_1',
      callType: 'step',
      body: base64({ stepId: 1, stepType: 'Run', out: '"before of tag-1#00000000bb"' }),
    },
    { messageId: 'msg_2', callType: 'step', body: base64({ stepId: 2, stepType: 'Wait', out: base64(NEWS) }) },
  ],
};

const RETURNED = JSON.stringify(['before of tag-1#00000000bb', `woken by ${NEWS}`]);
const SOUND: Partial<LoggedRun> = { response: RETURNED };

/** The findings by kind. A run of `waits` was triggered, and notified with `NEWS`. */
function findings({ program = 'waits', more = [], dead = [], lines = [], ...given }: Case): Partial<RunVerdict> {
  const book = new RunBook();
  const run = book.attempted('wfr_1', 'tag-1', program);
  run.trigger = 'acked';
  run.news.set(NEWS, 'acked');
  const logged = 'logged' in given ? given.logged : SOUND;
  const runs = [...(logged ? [loggedRun({ program, ...logged })] : []), ...more];
  const all = [DELIVERED, ...lines];
  const verdict = judgeRuns({ book, view: { runs, dead }, lines: all, journals: judgeJournals(all) });
  return Object.fromEntries(LISTS.filter((list) => verdict[list].length > 0).map((list) => [list, verdict[list]]));
}

describe('the checks of runs', () => {
  it('find nothing wrong with a run that returned the expected lines', () => {
    expect(findings({})).toEqual({});
  });

  it('report a missing run that was acknowledged', () => {
    expect(findings({ logged: undefined })).toMatchObject({ lost: ['wfr_1'] });
  });

  it('report a run that was not triggered, and a run that was started twice', () => {
    const stranger = loggedRun({ runId: 'wfr_2', program: 'oversleeps', states: ['RUN_STARTED', 'RUN_CANCELED'] });
    expect(findings({ more: [stranger] }).unexpected).toEqual(['wfr_2 invoked by nobody']);
    expect(findings({ more: [loggedRun(SOUND)] }).unexpected).toEqual(['wfr_1 started twice']);
  });

  it('report a surplus child run', () => {
    const child = loggedRun({
      runId: 'wfr_2',
      program: 'oversleeps',
      invoker: 'wfr_1',
      states: ['RUN_STARTED', 'RUN_CANCELED'],
    });
    expect(findings({ more: [child] }).unexpected).toEqual(['wfr_1 invoked 1 runs instead of 0']);
  });

  it('report runs and messages without an end or with two', () => {
    const states = ['RUN_STARTED', 'RUN_SUCCESS', 'RUN_CANCELED'];
    expect(findings({ logged: { ...SOUND, states } }).notEndedOnce).toHaveLength(1);
    expect(findings({ logged: { ...SOUND, states: ['RUN_STARTED'] } }).notEndedOnce).toHaveLength(1);
    const messages = new Map([['msg_1', ['CREATED']]]);
    expect(findings({ logged: { ...SOUND, messages } }).notEndedOnce).toEqual(['msg_1 of wfr_1: CREATED']);
  });

  it.each([
    ['a mark of no execution', RETURNED.replace('#00000000bb', '#00000000cc')],
    ['a notification that was not sent', RETURNED.replace(NEWS, 'news for tag-1#00000000bb')],
    ['half of the lines', JSON.stringify(['before of tag-1#00000000bb'])],
    ['the lines of another run', RETURNED.replaceAll('tag-1', 'tag-2')],
    ['nothing', undefined],
  ])('report a run that returned %s', (_, response) => {
    expect(findings({ logged: { response } }).returnedWrongly).toHaveLength(1);
  });

  it('report a run with an unexpected end', () => {
    const failed = { states: ['RUN_STARTED', 'RUN_FAILED'] };
    expect(findings({ logged: failed }).endedWrongly).toEqual([
      'wfr_1 (waits, trigger acked, cancel not asked or 404): RUN_FAILED',
    ]);
    expect(findings({ program: 'refuses' }).endedWrongly).toEqual([
      'wfr_1 (refuses, trigger acked, cancel not asked or 404): RUN_SUCCESS',
    ]);
  });

  it('report a failed run without a failure callback or without an entry in the DLQ', () => {
    const failed: Case = { program: 'refuses', logged: { states: ['RUN_STARTED', 'RUN_FAILED'] } };
    const dead = [{ runId: 'wfr_1', failureCallback: 'CALLBACK_SUCCESS' }];
    const lines: DiaryLine[] = [{ kind: 'told of failure', runId: 'wfr_1' }];
    expect(findings({ ...failed, dead, lines })).toEqual({});
    expect(findings({ ...failed, dead }).failuresNotTold).toHaveLength(1);
    expect(findings({ ...failed, lines }).failuresNotTold).toHaveLength(1);
    expect(findings({ dead, lines }).failuresNotTold).toHaveLength(1);
  });
});
