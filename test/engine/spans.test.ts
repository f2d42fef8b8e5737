/** The ids of spans: equal for the same subject, and different for different subjects. */
import { describe, expect, it } from 'vitest';
import { spanOfAttempt, spanOfMessage, spanOfRun, spanOfWait, traceWithin } from '../../src/engine/spans.ts';
import type { MessageSettings, RunSettings } from '../../src/protocol/options/settings.ts';
import { message } from './fixtures.ts';

const TRACE_ID = '4bf92f3577b34da6a3ce929d0e0e4736';
const TRACE = { parent: `00-${TRACE_ID}-00f067aa0ba902b7-01`, state: 'a=1' };
const UNRECORDED = { parent: `00-${TRACE_ID}-00f067aa0ba902b7-00` };
const PLAIN: MessageSettings = { dialect: 'upstash', maxRetries: 3 };
const RUN: RunSettings = {
  ...{ key: 1, id: 'wfr_1', createdAtMs: 5, url: 'https://a.example/wf' },
  ...{ callType: 'step', features: [] },
};

const of = (settings: Partial<MessageSettings>) => message({ settings: { ...PLAIN, ...settings } });

describe('a message', () => {
  it('is below the span that its publisher names, in that trace', () => {
    const span = spanOfMessage(of({ trace: TRACE }));
    expect(span).toEqual({
      traceId: TRACE_ID,
      spanId: expect.stringMatching(/^[0-9a-f]{16}$/),
      parentId: '00f067aa0ba902b7',
    });
    expect(spanOfMessage(of({ trace: TRACE }))).toEqual(span);
    expect(spanOfMessage({ ...of({ trace: TRACE }), id: 'msg_other' })?.spanId).not.toBe(span?.spanId);
  });

  it('starts its own trace without one, and has none when its publisher records none', () => {
    expect(spanOfMessage(of({}))).toEqual({
      traceId: expect.stringMatching(/^[0-9a-f]{32}$/),
      spanId: expect.stringMatching(/^[0-9a-f]{16}$/),
    });
    expect(spanOfMessage(of({ trace: UNRECORDED }))).toBeUndefined();
    expect(spanOfAttempt({ message: of({ trace: UNRECORDED }), claimToken: 1 })).toBeUndefined();
  });

  it('has an attempt for each claim below it, with the waits before and after, all of them different', () => {
    const tokens = [1, 2, 2 ** 32, 2 ** 32 + 1, 2 ** 53 - 1];
    const spans = tokens.flatMap((claimToken) => {
      const claimed = { message: of({ trace: TRACE }), claimToken };
      return [spanOfAttempt(claimed), spanOfWait(claimed, 'before'), spanOfWait(claimed, 'after')];
    });
    expect(new Set(spans.map((span) => span?.parentId))).toEqual(new Set([spanOfMessage(of({}))?.spanId]));
    expect(new Set(spans.map((span) => span?.spanId)).size).toBe(15);
    for (const span of spans) expect(span?.spanId).toMatch(/^[0-9a-f]{16}$/);
  });
});

describe('a run', () => {
  it('is between its publisher and all its messages', () => {
    const run = spanOfRun(RUN, TRACE);
    expect(run).toMatchObject({ traceId: TRACE_ID, parentId: '00f067aa0ba902b7' });
    expect(spanOfMessage(of({ run: { ...RUN }, trace: TRACE }))).toMatchObject({
      traceId: TRACE_ID,
      parentId: run?.spanId,
    });
    expect(spanOfRun({ ...RUN, createdAtMs: 6 }, TRACE)?.spanId).not.toBe(run?.spanId);
    expect(spanOfRun(RUN, UNRECORDED)).toBeUndefined();
    expect(spanOfMessage(of({ run: { ...RUN }, trace: UNRECORDED }))).toBeUndefined();
  });

  it('that has started its trace is its first span, also once it is named as the parent', () => {
    const run = spanOfRun(RUN, undefined);
    expect(run).not.toHaveProperty('parentId');
    const own = traceWithin(run, undefined);
    expect(spanOfRun(RUN, own)).toEqual(run);
    expect(spanOfMessage(of({ run: { ...RUN }, ...(own && { trace: own }) }))).toMatchObject({
      traceId: run?.traceId,
      parentId: run?.spanId,
    });
  });
});

it('messages that follow from a span have it as parent, and the state of its trace', () => {
  const span = spanOfMessage(of({ trace: TRACE }));
  expect(traceWithin(span, TRACE)).toEqual({ parent: `00-${TRACE_ID}-${span?.spanId}-01`, state: 'a=1' });
  expect(traceWithin(undefined, UNRECORDED)).toBe(UNRECORDED);
});
