/** The lists of messages, merged from pages and live entries; selections; and the text of counts. */
import { describe, expect, it } from 'vitest';
import type { LiveEntry } from '../../console/src/api/live.ts';
import { countText } from '../../console/src/parts/count.ts';
import { NONE, toggled } from '../../console/src/screens/dlq/selection.ts';
import { matches } from '../../console/src/screens/messages/matches.ts';
import { latestOf, merge } from '../../console/src/screens/messages/rows.ts';

function entry(messageId: string, state: LiveEntry['state'], time: number, more: Partial<LiveEntry> = {}): LiveEntry {
  return { messageId, state, time, url: 'https://app.example:8443/hook', method: 'POST', ...more };
}

describe('the growing log', () => {
  it('has an entry that was read and received live once, and a late commit at its position', () => {
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

  it('shows each message once, with its latest entry and the error of its last attempt', () => {
    const log = [
      entry('a', 'FAILED', 4),
      entry('b', 'DELIVERED', 3),
      entry('a', 'ERROR', 2, { error: 'connection refused' }),
      entry('b', 'ERROR', 1, { error: 'fixed since' }),
    ];
    expect(latestOf(log)).toEqual([
      entry('a', 'FAILED', 4, { error: 'connection refused' }),
      entry('b', 'DELIVERED', 3),
    ]);
  });
});

describe('a filter of live entries', () => {
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
  ])('%j applied to %j', (filter, given, isMatch) => {
    expect(matches(given, filter as Record<string, string>)).toBe(isMatch);
  });

  it('compares whole URLs, except for a masked password', () => {
    const given = entry('a', 'CREATED', 10, { url: 'https://ann:***@app.example/' });
    expect(matches(given, { url: 'https://ann:secret@app.example/' })).toBe(true);
    expect(matches(given, { url: 'https://eve:secret@app.example/' })).toBe(false);
  });
});

describe('a selection', () => {
  it('adds and removes an entry', () => {
    const one = toggled(NONE, 'a', ['a', 'b']);
    expect(one).toEqual({ kind: 'some', ids: new Set(['a']) });
    expect(toggled(one, 'a', ['a', 'b'])).toEqual(NONE);
  });

  it('of all entries becomes the loaded entries without the removed one', () => {
    expect(toggled({ kind: 'all' }, 'b', ['a', 'b', 'c'])).toEqual({ kind: 'some', ids: new Set(['a', 'c']) });
  });
});

describe('a count with a limit', () => {
  it('shows that it is a lower bound, and that it is unknown if nothing was found before the limit', () => {
    const texts = [0, 500].flatMap((count) => [false, true].map((isAtLeast) => countText({ count, isAtLeast })));
    expect(texts).toEqual(['0', 'not counted', '500', '≥ 500']);
  });
});
