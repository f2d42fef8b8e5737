/** Tests the helpers of the schedule checks: the wall clock, and the possible endpoints of a group. */
import { describe, expect, test } from 'vitest';
import { SimulatedClock } from '../support/simulated-clock.ts';
import { possibleGroups } from './group-workload.ts';
import type { Call, CallResult, GroupAction } from './ledger.ts';
import { WallClock } from './wall-clock.ts';

describe('the wall clock', () => {
  /**
   * The clock shows 1,000 at the start, is set back by 300 after 100 ms and forward by 900 after 200 ms, and is read
   * after 400 ms.
   */
  async function wallClock(): Promise<WallClock> {
    const clock = new SimulatedClock(1_000);
    const jumps: { at: number; atMs: number; fromMs: number }[] = [];
    for (const byMs of [-300, 900]) {
      await clock.advanceBy(100);
      jumps.push({ at: 0, atMs: clock.elapsedMs, fromMs: clock.wallMs() });
      clock.jumpBy(byMs);
    }
    await clock.advanceBy(200);
    return new WallClock({ clock, jumps, isShared: false });
  }

  test('knows its earliest and latest readings in a period', async () => {
    const wall = await wallClock();
    expect([wall.lowest(0, 50), wall.highest(0, 50)]).toEqual([1_000, 1_050]);
    expect([wall.lowest(50, 150), wall.highest(50, 150)]).toEqual([800, 1_100]);
    expect([wall.lowest(150, 400), wall.highest(150, 400)]).toEqual([850, 2_000]);
  });

  test('finds each moment at which it showed a multiple, including repeated ones', async () => {
    const wall = await wallClock();
    expect(wall.multiples(50, 60, 160)).toEqual([
      { atMs: 100, timeMs: 1_100 },
      { atMs: 100, timeMs: 800 },
      { atMs: 150, timeMs: 850 },
    ]);
  });
});

describe('the endpoints that a group may have had', () => {
  const urls = (text: string) => text.split(' ');
  function call(
    action: GroupAction['action'],
    names: string,
    startAtMs: number,
    result: CallResult,
  ): GroupAction & Call {
    return { action, groupName: 'g', urls: urls(names), result, startAtMs, endedAt: 0, endedAtMs: startAtMs + 10 };
  }

  test('are those before or after a change while it is pending, and then those after it', () => {
    const calls = [call('add', 'b a', 100, 'acked'), call('remove', 'a', 200, 'acked')];
    expect([...possibleGroups(calls, 'g', [0, 99])]).toEqual(['']);
    expect([...possibleGroups(calls, 'g', [50, 105])]).toEqual(['', 'a b']);
    expect([...possibleGroups(calls, 'g', [150, 150])]).toEqual(['a b']);
    expect([...possibleGroups(calls, 'g', [150, 205])]).toEqual(['a b', 'b']);
    expect([...possibleGroups(calls, 'g', [300, 300])]).toEqual(['b']);
  });

  test('stay uncertain after a lost response, until the group is deleted', () => {
    const calls = [call('add', 'a', 100, 'unknown'), call('add', 'b', 200, 'acked'), call('delete', '', 300, 'acked')];
    expect([...possibleGroups(calls, 'g', [250, 250])].sort()).toEqual(['a b', 'b']);
    expect([...possibleGroups(calls, 'g', [400, 400])]).toEqual(['']);
  });

  test('are not changed by rejected calls or by calls for another group', () => {
    const calls = [call('add', 'a', 100, 'rejected'), { ...call('add', 'b', 200, 'acked'), groupName: 'other' }];
    expect([...possibleGroups(calls, 'g', [300, 300])]).toEqual(['']);
  });
});
