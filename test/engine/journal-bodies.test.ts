/** The delivered body of a journal entry, and when it is read from the store. */
import { describe, expect, test } from 'vitest';
import type { Claimed } from '../../src/engine/model.ts';
import { JournalBodies } from '../../src/engine/runs/journal-bodies.ts';
import type { CallType, RunSettings } from '../../src/protocol/options/settings.ts';
import type { JournalEntry } from '../../src/workflow/model.ts';
import { claimed, message } from './fixtures.ts';

const RUN_KEY = 1;

function entry(position: number, text = `body ${position}`): JournalEntry {
  return { position, messageId: `msg_${position}`, callType: 'step', body: new TextEncoder().encode(text) };
}

/** A store with a journal that records its reads. */
class Shelf {
  readonly runs = this;
  readonly asked: { afterPosition?: number; toPosition?: number }[] = [];
  entries: JournalEntry[];
  /** Runs once, during the next read. */
  meanwhile: (() => void) | undefined;

  constructor(entries: JournalEntry[]) {
    this.entries = entries;
  }

  async readJournal({ ...range }: { afterPosition?: number; toPosition?: number }) {
    const { afterPosition = -1, toPosition = Infinity } = range;
    this.asked.push({ afterPosition, toPosition });
    const found = this.entries.filter(({ position }) => position > afterPosition && position <= toPosition);
    this.meanwhile?.();
    this.meanwhile = undefined;
    return found;
  }
}

interface EntryPosition {
  bytes?: number;
  callType?: CallType;
  runKey?: number;
  init?: 'unknown';
}

function at(position: number, changes: EntryPosition = {}): Claimed {
  const { bytes = 1, callType = 'step', runKey = RUN_KEY, init } = changes;
  const run: RunSettings = {
    key: runKey,
    id: 'wfr_a',
    createdAtMs: 1,
    url: 'https://app.example',
    callType,
    features: [],
    ...(init && { init }),
  };
  const settings = { dialect: 'upstash' as const, maxRetries: 3, run };
  return claimed({ message: message({ settings }), journal: { position, bytes } });
}

async function shown(bodies: JournalBodies, of: Claimed): Promise<string[] | undefined> {
  const body = await bodies.bodyOf(of);
  if (!body) return undefined;
  const elements = JSON.parse(new TextDecoder().decode(body)) as { body: string }[];
  return elements.map((element) => Buffer.from(element.body, 'base64').toString());
}

describe('the body of a step', () => {
  test('is not kept while another message may replace the first, at any worker', async () => {
    const shelf = new Shelf([entry(0)]);
    const bodies = new JournalBodies(shelf);
    expect(await shown(bodies, at(0, { init: 'unknown' }))).toEqual(['body 0']);
    shelf.entries = [{ ...entry(0), body: Buffer.from('another') }, entry(1)];
    expect(await shown(bodies, at(1))).toEqual(['another', 'body 1']);
  });

  test('is the journal up to it, and no further', async () => {
    const bodies = new JournalBodies(new Shelf([entry(0), entry(1), entry(2)]));
    expect(await shown(bodies, at(1))).toEqual(['body 0', 'body 1']);
    expect(await shown(bodies, at(2))).toEqual(['body 0', 'body 1', 'body 2']);
    expect(await shown(bodies, at(0))).toEqual(['body 0']);
  });

  test('leaves out positions that deliveries do not show', async () => {
    const bodies = new JournalBodies(new Shelf([entry(0), entry(3)]));
    expect(await shown(bodies, at(3))).toEqual(['body 0', 'body 3']);
    expect(await shown(bodies, at(0))).toEqual(['body 0']);
  });

  test('is read once, and after that only the new entries', async () => {
    const shelf = new Shelf([entry(0), entry(1), entry(2), entry(5)]);
    const bodies = new JournalBodies(shelf);
    await shown(bodies, at(1));
    await shown(bodies, at(1));
    await shown(bodies, at(5));
    expect(shelf.asked).toEqual([
      { afterPosition: -1, toPosition: 1 },
      { afterPosition: 1, toPosition: 5 },
    ]);
  });

  test('is not read at all when every entry was noted', async () => {
    const shelf = new Shelf([]);
    const bodies = new JournalBodies(shelf);
    for (const position of [0, 1, 2]) bodies.note(RUN_KEY, entry(position));
    expect(await shown(bodies, at(2))).toEqual(['body 0', 'body 1', 'body 2']);
    expect(shelf.asked).toEqual([]);
  });

  test('is read if the noted entries leave a gap', async () => {
    const bodies = new JournalBodies(new Shelf([entry(0), entry(1), entry(2)]));
    bodies.note(RUN_KEY, entry(0));
    bodies.note(RUN_KEY, entry(2));
    expect(await shown(bodies, at(2))).toEqual(['body 0', 'body 1', 'body 2']);
  });

  test('is right when more entries are noted during the read', async () => {
    const shelf = new Shelf([entry(0), entry(1)]);
    const bodies = new JournalBodies(shelf);
    bodies.note(RUN_KEY, entry(0));
    shelf.meanwhile = () => {
      bodies.note(RUN_KEY, entry(1));
      bodies.note(RUN_KEY, entry(2));
    };
    expect(await shown(bodies, at(1))).toEqual(['body 0', 'body 1']);
    expect(await shown(bodies, at(2))).toEqual(['body 0', 'body 1', 'body 2']);
  });

  test('is read again once it was forgotten', async () => {
    const shelf = new Shelf([entry(0, 'new')]);
    const bodies = new JournalBodies(shelf);
    bodies.note(RUN_KEY, entry(0, 'old'));
    bodies.forget(RUN_KEY);
    expect(await shown(bodies, at(0))).toEqual(['new']);
  });

  test('is read each time when it is too large to be kept', async () => {
    const shelf = new Shelf([entry(0, 'x'.repeat(4 * 1024 * 1024))]);
    const bodies = new JournalBodies(shelf);
    await bodies.bodyOf(at(0));
    await bodies.bodyOf(at(0));
    expect(shelf.asked).toHaveLength(2);
  });

  test('is read again once many others were noted after it, and the latest is not', async () => {
    const shelf = new Shelf([entry(0)]);
    const bodies = new JournalBodies(shelf);
    bodies.note(RUN_KEY, entry(0));
    // Each has the largest size that is kept for one run, so ten are too many.
    for (let runKey = RUN_KEY + 1; runKey <= RUN_KEY + 10; runKey += 1) {
      bodies.note(runKey, entry(0, 'x'.repeat(3 * 1024 * 1024 - 1024)));
    }
    await bodies.bodyOf(at(0, { runKey: RUN_KEY + 10 }));
    expect(shelf.asked).toHaveLength(0);
    await bodies.bodyOf(at(0));
    expect(shelf.asked).toHaveLength(1);
  });

  test('is empty when the endpoint fetches it, and nothing is read', async () => {
    const shelf = new Shelf([entry(0)]);
    const body = await new JournalBodies(shelf).bodyOf(at(0, { bytes: 0 }));
    expect(body).toHaveLength(0);
    expect(shelf.asked).toEqual([]);
  });
});

describe('the message itself is sent', () => {
  test.for(['toCallback', 'fromCallback'] as const)('for %s', async (callType) => {
    expect(await new JournalBodies(new Shelf([entry(0)])).bodyOf(at(1, { callType }))).toBeUndefined();
  });

  test('for messages outside runs', async () => {
    expect(await new JournalBodies(new Shelf([])).bodyOf(claimed())).toBeUndefined();
  });
});

test('a large result of a call is fetched by the endpoint', async () => {
  const body = await new JournalBodies(new Shelf([])).bodyOf(at(1, { callType: 'fromCallback', bytes: 0 }));
  expect(body).toHaveLength(0);
});
