/** How many spans wait for a collector, and how dropped spans are reported. */
import { expect, it } from 'vitest';
import { SpanRecorder } from '../../../src/telemetry/traces/span-recorder.ts';
import { message, NOW_MS } from '../../engine/fixtures.ts';
import { spansIn } from '../../support/collector.ts';
import { SimulatedClock } from '../../support/simulated-clock.ts';

function open() {
  const clock = new SimulatedClock();
  const warnings: unknown[] = [];
  /** Numbers of spans, in the order of what was sent. */
  const sent: number[] = [];
  let answer: (failure?: string) => void = () => {};
  let isClosed = false;
  const collector = {
    send(body: Uint8Array): Promise<string | undefined> {
      if (isClosed) return Promise.resolve('closed');
      sent.push(spansIn(body).length);
      return new Promise((resolve) => {
        answer = resolve;
      });
    },
    close() {
      isClosed = true;
      answer('closed');
    },
  };
  const sender = { resource: {}, version: '1' };
  const recorder = new SpanRecorder(sender, collector, clock, (reason, total) => warnings.push({ reason, total }));
  const record = (count: number): void => {
    for (let nth = 0; nth < count; nth += 1) {
      const state = { kind: 'due', dueAtMs: NOW_MS } as const;
      recorder.accepted({ message: message({ id: `msg_${nth}` }), state, events: [] }, NOW_MS);
    }
  };
  const total = () => sent.reduce((sum, count) => sum + count, 0);
  /** The collector answers, and what follows from that has happened. */
  const answers = async (failure?: string): Promise<void> => {
    answer(failure);
    await clock.advanceBy(0);
  };
  return { clock, sent, total, answers, warnings, recorder, record };
}

it('gathers spans for half a second', async () => {
  const { clock, sent, record } = open();
  record(1);
  await clock.advanceBy(400);
  record(2);
  await clock.advanceBy(99);
  expect(sent).toEqual([]);
  await clock.advanceBy(1);
  expect(sent).toEqual([3]);
});

it('sends one request at a time, none much longer than half a mebibyte, and loses none', async () => {
  const { clock, sent, total, answers, record } = open();
  record(5_000);
  await clock.advanceBy(500);
  expect(sent).toHaveLength(1);
  while (total() < 5_000) await answers();
  expect(sent.length).toBeGreaterThan(2);
  expect(Math.max(...sent)).toBeLessThan(2_500); // of more than 210 bytes each
});

it('P10: keeps no more than 16 MiB while the collector does not answer, and says how many it dropped', async () => {
  const { clock, sent, answers, warnings, recorder, record } = open();
  record(120_000);
  const { dropped } = recorder.counts;
  const kept = 120_000 - dropped;
  expect(kept).toBeGreaterThan((16 * 2 ** 20) / 400);
  expect(kept).toBeLessThan((16 * 2 ** 20) / 200);
  await clock.advanceBy(1_000);
  expect(warnings).toEqual([{ reason: 'too many spans wait for the collector', total: dropped }]);
  await answers();
  expect(recorder.counts).toEqual({ exported: sent[0], dropped });
  record(10);
  expect(recorder.counts.dropped).toBe(dropped);
});

it('counts what the collector has not got, and says so at most once a second', async () => {
  const { clock, sent, answers, warnings, recorder, record } = open();
  record(6_000);
  await answers('the collector responded with 400');
  await answers('the collector responded with 500');
  const dropped = Number(sent[0]) + Number(sent[1]);
  expect(recorder.counts).toEqual({ exported: 0, dropped });
  expect(warnings).toEqual([]);
  await clock.advanceBy(1_000);
  expect(warnings).toEqual([{ reason: 'the collector responded with 500', total: dropped }]);
});

it('waits at its end for what is left', async () => {
  const { sent, answers, recorder, record } = open();
  record(3);
  const closed = recorder.close();
  expect(sent).toEqual([3]);
  await answers();
  await closed;
  expect(recorder.counts).toEqual({ exported: 3, dropped: 0 });
});

it('waits at its end for two seconds at most, and says what is lost by that', async () => {
  const { clock, recorder, record, warnings } = open();
  record(3);
  const closed = recorder.close();
  await clock.advanceBy(2_000);
  await closed;
  expect(warnings).toEqual([{ reason: 'closed', total: 3 }]);
});
