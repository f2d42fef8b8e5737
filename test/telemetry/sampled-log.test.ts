import { beforeEach, describe, expect, it } from 'vitest';
import type { EventLog } from '../../src/engine/ports.ts';
import { sampledLog } from '../../src/telemetry/sampled-log.ts';
import { SimulatedClock } from '../support/simulated-clock.ts';

describe('a log under a flood', () => {
  let clock: SimulatedClock;
  let lines: string[];
  let log: EventLog;

  beforeEach(() => {
    clock = new SimulatedClock();
    lines = [];
    const to =
      (level: string): EventLog['info'] =>
      (event, { kind = '', count = '' } = {}) =>
        lines.push([level, event, kind, count].join(' ').trim());
    log = sampledLog({ debug: to('debug'), info: to('info'), warn: to('warn'), error: to('error') }, clock, 2);
  });

  const warn = (times: number, event = 'a') => {
    for (let i = 0; i < times; i++) log.warn(event);
  };

  it('says each event so many times a second, and after the second how many more there were', async () => {
    warn(5);
    expect(lines).toEqual(['warn a', 'warn a']);
    await clock.advanceBy(1000);
    expect(lines).toEqual(['warn a', 'warn a', 'warn events_left_out a 3']);
  });

  it('counts each second anew', async () => {
    warn(3);
    await clock.advanceBy(1000);
    lines.length = 0;
    warn(2);
    await clock.advanceBy(1000);
    warn(1);
    expect(lines).toEqual(['warn a', 'warn a', 'warn a']);
  });

  it('lets through at once what comes less often than that, however long it goes on', async () => {
    for (let second = 0; second < 5; second++) {
      warn(2);
      await clock.advanceBy(1000);
    }
    expect(lines).toEqual(Array(10).fill('warn a'));
  });

  it('leaves no event out because of another', () => {
    warn(9);
    log.error('b');
    log.info('c');
    log.debug('d');
    expect(lines.slice(2)).toEqual(['error b', 'info c', 'debug d']);
  });

  it('says what it left out at the level of the event, so that nobody hears of what he does not see', async () => {
    for (let i = 0; i < 3; i++) log.debug('a');
    await clock.advanceBy(1000);
    expect(lines.at(-1)).toBe('debug events_left_out a 1');
  });
});
