/** How the lists of messages are put together from what is read and what comes live, and how counts are written. */
import { describe, expect, it } from 'vitest';
import type { LiveEntry } from '../../console/src/api/live.ts';
import { countText } from '../../console/src/parts/count.ts';
import { NONE, toggled } from '../../console/src/screens/dlq/selection.ts';
import { matches } from '../../console/src/screens/messages/matches.ts';
import { latestOf, merge } from '../../console/src/screens/messages/rows.ts';

function entry(messageId: string, state: LiveEntry['state'], time: number, more: Partial<LiveEntry> = {}): LiveEntry {
  return { messageId, state, time, url: 'https://app.example:8443/hook', method: 'POST', ...more };
}

describe('the log as it grows', () => {
  it('has what was read and also came live only once, and what was committed late at its place', () => {
    const created = entry('a', 'CREATED', 10);
    const late = entry('b', 'CREATED', 5);
    const read = [created, entry('c', 'CREATED', 1)];
    expect(merge([late, created, entry('a', 'ACTIVE', 11)], read)).toEqual([
      entry('a', 'ACTIVE', 11),
      created,
      late,
      entry('c', 'CREATED', 1),
    ]);
  });

  it('shows each message once, by its latest entry, with the error that it failed of', () => {
    const log = [
      entry('a', 'FAILED', 4),
      entry('b', 'DELIVERED', 3),
      entry('a', 'ERROR', 2, { error: 'connection refused' }),
      entry('b', 'ERROR', 1, { error: 'mended since' }),
    ];
    expect(latestOf(log)).toEqual([
      entry('a', 'FAILED', 4, { error: 'connection refused' }),
      entry('b', 'DELIVERED', 3),
    ]);
  });
});

describe('a filter of what comes live', () => {
  it.each([
    [{ state: 'IN_PROGRESS' }, entry('a', 'RETRY', 1), true],
    [{ state: 'IN_PROGRESS' }, entry('a', 'CREATED', 1), false],
    [{ state: 'FAILED' }, entry('a', 'FAILED', 1), true],
    [{ host: 'APP.example:8443' }, entry('a', 'CREATED', 1), true],
    [{ host: 'app.example' }, entry('a', 'CREATED', 1), false],
    [{ label: 'eu' }, entry('a', 'CREATED', 1, { labels: ['orders', 'eu'] }), true],
    [{ label: 'eu' }, entry('a', 'CREATED', 1), false],
    [{ queueName: 'q', label: 'eu' }, entry('a', 'CREATED', 1, { queueName: 'q' }), false],
    [{ fromDate: '2' }, entry('a', 'CREATED', 1), false],
    [{ toDate: '2' }, entry('a', 'CREATED', 2), true],
    [{}, entry('a', 'CREATED', 1, { workflowRunId: 'wfr_1' }), false],
  ])('%j of %j', (filter, given, isOfIt) => {
    expect(matches(given, filter as Record<string, string>)).toBe(isOfIt);
  });

  it('is filtered by the whole URL, though the password in it is masked', () => {
    const given = entry('a', 'CREATED', 10, { url: 'https://ann:***@app.example/' });
    expect(matches(given, { url: 'https://ann:secret@app.example/' })).toBe(true);
    expect(matches(given, { url: 'https://eve:secret@app.example/' })).toBe(false);
  });
});

describe('a selection', () => {
  it('takes an entry in and out', () => {
    const one = toggled(NONE, 'a', ['a', 'b']);
    expect(one).toEqual({ kind: 'some', ids: new Set(['a']) });
    expect(toggled(one, 'a', ['a', 'b'])).toEqual(NONE);
  });

  it('is of what is loaded without the one that is taken out, after all were selected', () => {
    expect(toggled({ kind: 'all' }, 'b', ['a', 'b', 'c'])).toEqual({ kind: 'some', ids: new Set(['a', 'c']) });
  });
});

describe('a count that may end early', () => {
  it('says that it did, and where nothing was met by then, that nothing was counted', () => {
    const texts = [0, 500].flatMap((count) => [false, true].map((isAtLeast) => countText({ count, isAtLeast })));
    expect(texts).toEqual(['0', 'not counted', '500', '≥ 500']);
  });
});
