import { describe, expect, it } from 'vitest';
import { CallbackBook, type CallbackKind, type Telling } from './callback-book.ts';
import type { FinalView } from './ledger.ts';

const TAGS = new Map([['msg_1', 'a']]);
const telling: Telling = {
  kind: 'callback',
  sourceId: 'msg_1',
  sourceRetried: 0,
  messageId: 'msg_2',
  retried: 0,
  incarnation: 0,
  status: 200,
};

function asked(...kinds: CallbackKind[]): CallbackBook {
  const book = new CallbackBook();
  book.asked('a', kinds);
  return book;
}

/** Of the source: so many attempts and such an ending. */
function view(attempts: number, ending: string, ...dead: string[]): FinalView {
  return {
    dead: new Set(dead),
    endings: new Map([['msg_1', [ending]]]),
    attempts: new Map([['msg_1', attempts]]),
  };
}

describe('the book of callbacks', () => {
  it('finds nothing wrong with a delivery that was told of', () => {
    const book = asked('callback', 'failureCallback');
    book.told(telling);
    expect(book.judge(view(1, 'DELIVERED'), TAGS)).toEqual({
      taken: 1,
      buried: 0,
      untold: [],
      toldTwice: [],
      toldOfNothing: [],
      lost: [],
      unexplained: [],
      repeatedAfterCrash: 0,
    });
  });

  it('misses the callback of each recorded attempt', () => {
    const book = asked('callback');
    book.told(telling);
    expect(book.judge(view(3, 'DELIVERED'), TAGS).untold).toEqual([
      'callback of msg_1 retried 1',
      'callback of msg_1 retried 2',
    ]);
  });

  it('misses the failure callback of a death, and of nothing else', () => {
    const book = asked('failureCallback');
    expect(book.judge(view(2, 'FAILED'), TAGS).untold).toEqual(['failureCallback of msg_1 retried 1']);
    expect(book.judge(view(2, 'DELIVERED'), TAGS).untold).toEqual([]);
    book.told({ ...telling, kind: 'failureCallback', sourceRetried: 1 });
    expect(book.judge(view(2, 'FAILED'), TAGS)).toMatchObject({ untold: [], toldOfNothing: [] });
  });

  it('tells two callbacks of one attempt from one that is repeated', () => {
    const book = asked('callback');
    book.told({ ...telling, incarnation: 0 });
    book.told({ ...telling, incarnation: 1 });
    expect(book.judge(view(1, 'DELIVERED'), TAGS)).toMatchObject({ toldTwice: [], unexplained: [] });
    book.told({ ...telling, messageId: 'msg_3' });
    expect(book.judge(view(1, 'DELIVERED'), TAGS).toldTwice).toHaveLength(1);
  });

  it('finds a callback of an attempt that the logs do not have, or that nobody asked for', () => {
    const book = asked('callback');
    book.told({ ...telling, sourceRetried: 1 });
    book.told({ ...telling, kind: 'failureCallback' });
    expect(book.judge(view(1, 'DELIVERED'), TAGS).toldOfNothing).toHaveLength(2);
  });

  it('lets a callback that nobody takes end in the DLQ, and nowhere else', () => {
    const book = asked('callback');
    book.told({ ...telling, status: 500 });
    expect(book.judge(view(1, 'DELIVERED', 'msg_2'), TAGS)).toMatchObject({ buried: 1, lost: [] });
    expect(book.judge(view(1, 'DELIVERED'), TAGS)).toMatchObject({ buried: 0, lost: ['msg_2'] });
  });
});
