import { expect, it } from 'vitest';
import { EventReader } from '../../console/src/api/event-stream.ts';

const TEXT = ':\n\nevent: open\ndata: {}\n\nevent: entry\nid: 1-2\ndata: {"url":"https://a.example/: x"}\n\n';
const EVENTS = [
  { event: 'open', data: {} },
  { event: 'entry', data: { url: 'https://a.example/: x' } },
];

it('reads the same events however they are cut into pieces', () => {
  for (let length = 1; length <= TEXT.length; length += 1) {
    const reader = new EventReader();
    const pieces = TEXT.match(new RegExp(`[\\s\\S]{1,${length}}`, 'g')) ?? [];
    expect(pieces.flatMap((piece) => reader.read(piece))).toEqual(EVENTS);
  }
});

it('keeps back what is not complete', () => {
  expect(new EventReader().read('event: entry\ndata: {"a":1}\n')).toEqual([]);
});
