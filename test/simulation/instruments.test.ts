/** Tests the instruments of all simulated tests: clock, random numbers and network. */
import { describe, expect, test } from 'vitest';
import { claimed, message } from '../engine/fixtures.ts';
import { SeededRandom } from '../support/seeded-random.ts';
import { SimulatedClock } from '../support/simulated-clock.ts';
import { SimulatedNetwork } from '../support/simulated-network.ts';

describe('the simulated clock', () => {
  test('runs timers in order of their time, and those of one time in order of their setting', async () => {
    const clock = new SimulatedClock();
    const ran: string[] = [];
    for (const [name, delayMs] of [
      ['c', 20],
      ['a', 10],
      ['d', 20],
      ['b', 10],
      ['e', 20],
    ] as const) {
      clock.startTimer(delayMs, () => void ran.push(`${name} at ${clock.elapsedMs}`));
    }
    await clock.advanceBy(19);
    expect(ran).toEqual(['a at 10', 'b at 10']);
    await clock.advanceBy(1);
    expect(ran).toEqual(['a at 10', 'b at 10', 'c at 20', 'd at 20', 'e at 20']);
  });

  test('finishes all effects of a timer before the next one', async () => {
    const clock = new SimulatedClock();
    const ran: string[] = [];
    const takeFiftyTurns = async () => {
      for (let turn = 0; turn < 50; turn += 1) await Promise.resolve();
      ran.push('after fifty turns');
    };
    clock.startTimer(10, () => void takeFiftyTurns());
    clock.startTimer(10, () => void ran.push('the next one'));
    await clock.advanceBy(10);
    expect(ran).toEqual(['after fifty turns', 'the next one']);
  });

  test('runs a timer that a timer starts, and no cancelled one', async () => {
    const clock = new SimulatedClock();
    const ran: number[] = [];
    const cancelled = clock.startTimer(5, () => void ran.push(-1));
    clock.startTimer(1, () => {
      cancelled.cancel();
      clock.startTimer(3, () => void ran.push(clock.elapsedMs));
    });
    await clock.runUntilIdle(1_000);
    expect(ran).toEqual([4]);
  });

  test('sets the wall clock without effect on timers and elapsed time', async () => {
    const clock = new SimulatedClock(1_000_000);
    let fired: number[] = [];
    clock.startTimer(100, () => {
      fired = [clock.wallMs(), clock.nowMs(), clock.elapsedMs];
    });
    clock.jumpBy(-500_000);
    await clock.advanceBy(100);
    expect(fired).toEqual([500_100, 1_000_100, 100]);
  });

  test('throws when timers are left', async () => {
    const clock = new SimulatedClock();
    const again = () => void clock.startTimer(10, again);
    again();
    await expect(clock.runUntilIdle(1_000)).rejects.toThrow('still pending');
  });
});

describe('seeded chance', () => {
  test('repeats values for the same seed, and gives others for another seed', () => {
    const draw = (seed: number) => Array.from(new SeededRandom(seed).bytes(32));
    expect(draw(5)).toEqual(draw(5));
    expect(draw(5)).not.toEqual(draw(6));
    expect(draw(2 ** 32 + 5)).not.toEqual(draw(5));
  });

  test('is distributed evenly within its bounds', () => {
    const random = new SeededRandom(1);
    const counts = new Map<number, number>();
    for (let draw = 0; draw < 6_000; draw += 1) {
      const value = random.int(1, 6);
      counts.set(value, (counts.get(value) ?? 0) + 1);
    }
    expect([...counts.keys()].toSorted((a, b) => a - b)).toEqual([1, 2, 3, 4, 5, 6]);
    for (const count of counts.values()) expect(Math.abs(count - 1_000)).toBeLessThan(150);
  });

  test('follows its weights', () => {
    const random = new SeededRandom(1);
    const draws = Array.from({ length: 1_000 }, () => random.weighted({ often: 9, seldom: 1, never: 0 }));
    expect(draws.filter((draw) => draw === 'never')).toEqual([]);
    expect(draws.filter((draw) => draw === 'seldom').length).toBeGreaterThan(50);
    expect(draws.filter((draw) => draw === 'seldom').length).toBeLessThan(150);
  });
});

describe('the simulated network', () => {
  function network() {
    const clock = new SimulatedClock();
    const net = new SimulatedNetwork(clock, { travelMs: () => 10, timeoutMs: 1_000 });
    net.setEndpoint('https://a.example', () => ({ kind: 'answer', status: 200, afterMs: 50 }));
    net.setEndpoint('https://silent.example', () => ({ kind: 'silence' }));
    return { clock, net };
  }

  test('responds after the travel time and the endpoint’s own time', async () => {
    const { clock, net } = network();
    let heardAtMs = 0;
    const attempt = net.connect().attempt(claimed(), new AbortController().signal);
    void attempt.then(() => {
      heardAtMs = clock.elapsedMs;
    });
    await clock.advanceBy(1_000);
    expect(await attempt).toMatchObject({ kind: 'responded', status: 200 });
    expect(heardAtMs).toBe(60);
  });

  test('ends a silent attempt at the message’s own timeout if that is shorter', async () => {
    const { clock, net } = network();
    const silent = message({ origin: 'https://silent.example' });
    silent.settings.timeoutMs = 300;
    const attempt = net.connect().attempt(claimed({ message: silent }), new AbortController().signal);
    await clock.advanceBy(300);
    expect(await attempt).toMatchObject({ kind: 'unreachable', reason: 'timeout' });
  });

  test('delivers requests whose sender has died or given up', async () => {
    const { clock, net } = network();
    const [dying, aborting] = [net.connect(), net.connect()];
    const abort = new AbortController();
    let heard = false;
    void dying.attempt(claimed(), new AbortController().signal).then(() => {
      heard = true;
    });
    const aborted = aborting.attempt(claimed(), abort.signal);
    dying.die();
    abort.abort();
    expect(await aborted).toEqual({ kind: 'interrupted' });
    await clock.advanceBy(1_000);
    expect(net.attempts.map(({ reply }) => reply?.kind)).toEqual(['answer', 'answer']);
    expect(heard).toBe(false);
  });
});
