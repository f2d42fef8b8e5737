import { expect, it } from 'vitest';
import { EventReader } from '../../console/src/api/event-stream.ts';

const TEXT = ':\n\nevent: open\ndata: {}\n\nevent: entry\nid: 1-2\ndata: {"url":"https://a.example/: x"}\n\n';
const EVENTS = [
  { event: 'open', data: {} },
  { event: 'entry', data: { url: 'https://a.example/: x' } },
];

it('reads the same events in chunks of any size', () => {
  for (let length = 1; length <= TEXT.length; length += 1) {
    const reader = new EventReader();
    const chunks = TEXT.match(new RegExp(`[\\s\\S]{1,${length}}`, 'g')) ?? [];
    expect(chunks.flatMap((chunk) => reader.read(chunk))).toEqual(EVENTS);
  }
});

it('returns an event only when it is complete', () => {
  expect(new EventReader().read('event: entry\ndata: {"a":1}\n')).toEqual([]);
});
