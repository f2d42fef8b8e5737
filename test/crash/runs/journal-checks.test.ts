import { describe, expect, it } from 'vitest';
import type { DeliveredEntry, DiaryLine } from './diary.ts';
import { judgeJournals } from './journal-checks.ts';

const base64 = (value: unknown) =>
  Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64');

function entry(messageId: string, step: object, callType = 'step'): DeliveredEntry {
  return { messageId, body: base64(step), callType };
}

const payload = entry('msg_0', { tag: 'tag-1', third: '' });
const one = entry('msg_1', { stepId: 1, stepType: 'Run', out: '"one of tag-1#00000000aa"' });
const waited = entry('msg_2', { stepId: 2, stepType: 'Wait', out: base64('news#00000000bb') });

function delivered(journal: DeliveredEntry[], retried = 0): DiaryLine {
  const messageId = journal.at(-1)?.messageId ?? '';
  const call = { kind: 'delivered', call: '1-1', library: 'own' } as const;
  return { ...call, runId: 'wfr_1', createdAt: 1, program: 'sequence', messageId, retried, journal };
}

describe('the checks of journals', () => {
  it('find nothing wrong with deliveries that continue the previous journal, and read all marks', () => {
    const verdict = judgeJournals([delivered([payload]), delivered([payload, one, waited]), delivered([payload, one])]);
    expect(verdict).toMatchObject({ deliveries: 3, changed: [], recordedTwice: [], misdirected: [], unexplained: [] });
    expect(verdict.stories.get('wfr_1')).toMatchObject({
      tag: 'tag-1',
      marks: new Set(['#00000000aa', '#00000000bb']),
    });
  });

  it('report an entry that has changed', () => {
    const other = entry('msg_1', { stepId: 1, stepType: 'Run', out: '"one of tag-1#00000000cc"' });
    expect(judgeJournals([delivered([payload, one]), delivered([payload, other, waited])]).changed).toEqual([
      'entry 1 of wfr_1',
    ]);
  });

  it('report a result and a plan that were recorded twice', () => {
    const again = entry('msg_3', { stepId: 1, stepType: 'Run', out: '"other"' });
    const plans = ['msg_4', 'msg_5'].map((id) => entry(id, { stepId: 0, targetStep: 7, stepType: 'Run' }));
    expect(judgeJournals([delivered([payload, one, again, ...plans])]).recordedTwice).toEqual([
      'result of step 1 of wfr_1',
      'plan of step 7 of wfr_1',
    ]);
  });

  it('ignore entries for third parties', () => {
    const call = entry('msg_3', {}, 'toCallback');
    expect(judgeJournals([delivered([payload, one, call, call, waited])]).recordedTwice).toEqual([]);
  });

  it('report a journal with entries after its message', () => {
    const line = delivered([payload, one]);
    expect(judgeJournals([{ ...line, messageId: 'msg_0' } as DiaryLine]).misdirected).toEqual(['msg_0 of wfr_1']);
  });

  it('report an attempt that arrived twice from one server, and allow it from two', () => {
    const attempt = delivered([payload]);
    expect(judgeJournals([attempt, { kind: 'server ended' }, attempt])).toMatchObject({
      unexplained: [],
      repeatedAfterCrash: 1,
    });
    expect(judgeJournals([attempt, attempt]).unexplained).toHaveLength(1);
    expect(judgeJournals([attempt, delivered([payload], 1)]).unexplained).toEqual([]);
  });
});
