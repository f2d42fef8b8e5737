/** How many spans wait for a collector, and what is told of those that it does not get. */
import { expect, it } from 'vitest';
import type { ExporterReply, ExporterRequest } from '../../../src/telemetry/traces/exporter-thread.ts';
import { SpanRecorder } from '../../../src/telemetry/traces/span-recorder.ts';
import { message, NOW_MS } from '../../engine/fixtures.ts';
import { SimulatedClock } from '../../support/simulated-clock.ts';

function open() {
  const clock = new SimulatedClock();
  const posted: ExporterRequest[] = [];
  const warnings: unknown[] = [];
  const threads: ((reply: ExporterReply) => void)[] = [];
  const recorder = new SpanRecorder({
    machine: clock,
    onDropped: (reason, total) => warnings.push({ reason, total }),
    startThread: (onReply) => {
      threads.push(onReply);
      return { post: (request) => posted.push(request), end: async () => {} };
    },
  });
  const record = (count: number): void => {
    for (let nth = 0; nth < count; nth += 1) {
      const state = { kind: 'due', dueAtMs: NOW_MS } as const;
      recorder.accepted({ message: message({ id: `msg_${nth}` }), state, events: [] }, NOW_MS);
    }
  };
  return { clock, posted, warnings, threads, recorder, record };
}

it('gathers spans for half a second, or until there are enough for a request', async () => {
  const { clock, posted, record } = open();
  record(1);
  await clock.advanceBy(499);
  expect(posted).toEqual([]);
  await clock.advanceBy(1);
  expect(posted.map(({ count }) => count)).toEqual([1]);
  record(1_100);
  expect(posted.map(({ count }) => count)).toEqual([1, 512, 512]);
  await clock.advanceBy(500);
  expect(posted.map(({ count }) => count)).toEqual([1, 512, 512, 76]);
  expect(JSON.parse(posted[3]?.json ?? '')).toHaveLength(76);
});

it('P10: keeps no more than it may while the collector does not answer, and says how many it dropped', () => {
  const { posted, threads, warnings, recorder, record } = open();
  record(20_000);
  expect(posted.reduce((sum, { count }) => sum + count, 0)).toBe(16_384);
  expect(recorder.counts).toEqual({ exported: 0, dropped: 20_000 - 16_384 });
  expect(warnings[0]).toMatchObject({ total: 1 });
  threads[0]?.({ count: 512 });
  record(600);
  expect(recorder.counts).toEqual({ exported: 512, dropped: 20_000 - 16_384 + 88 });
});

it('counts what the collector refuses, and what a thread had that has ended, and starts another', () => {
  const { threads, warnings, recorder, record } = open();
  record(1_024);
  threads[0]?.({ count: 512, failure: 'Bad Request' });
  expect(recorder.counts).toEqual({ exported: 0, dropped: 512 });
  threads[0]?.({ failure: 'out of memory', hasEnded: true });
  expect(recorder.counts).toEqual({ exported: 0, dropped: 1_024 });
  expect(warnings).toEqual([
    { reason: 'Bad Request', total: 512 },
    { reason: 'out of memory', total: 1_024 },
  ]);
  record(512);
  expect(threads).toHaveLength(2);
});

it('waits at its end for what is left, but not for long', async () => {
  const { clock, threads, posted, recorder, record } = open();
  record(3);
  const closed = recorder.close();
  expect(posted.map(({ count }) => count)).toEqual([3]);
  threads[0]?.({ count: 3 });
  await closed;
  expect(recorder.counts).toEqual({ exported: 3, dropped: 0 });
  record(1);
  const impatient = recorder.close();
  await clock.advanceBy(2_000);
  await impatient;
});
