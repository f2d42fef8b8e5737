/** Keeps many events of one kind from filling the disk: so many lines a second, then one that counts the rest. */
import type { Clock, EventLog } from '../engine/ports.ts';

type Level = keyof EventLog;

const WINDOW_MS = 1000;

/** Lines of one event in a second: more than people read, few enough for any disk. */
const LINES_A_SECOND_MAX = 20;

/** Passes at most `linesMax` lines of each event in a second on to `log`, and says after that second how many more there were. */
export function sampledLog(log: EventLog, clock: Clock, linesMax = LINES_A_SECOND_MAX): EventLog {
  const windows = new Map<string, { startedAtMs: number; count: number }>();

  function write(level: Level, event: string, fields?: Parameters<EventLog[Level]>[1]): void {
    let window = windows.get(event);
    if (window === undefined || (window.count <= linesMax && clock.elapsedMs - window.startedAtMs >= WINDOW_MS)) {
      window = { startedAtMs: clock.elapsedMs, count: 0 };
      windows.set(event, window);
    }
    window.count += 1;
    if (window.count <= linesMax) return log[level](event, fields);
    // Only the first event that is left out starts a timer, so that the end of a flood is counted too.
    if (window.count > linesMax + 1) return;
    const { count, startedAtMs } = window;
    clock.startTimer(Math.max(0, startedAtMs + WINDOW_MS - clock.elapsedMs), () => {
      const leftOut = (windows.get(event)?.count ?? count) - linesMax;
      windows.delete(event);
      log[level]('events_left_out', { kind: event, count: leftOut });
    });
  }

  return {
    debug: (event, fields) => write('debug', event, fields),
    info: (event, fields) => write('info', event, fields),
    warn: (event, fields) => write('warn', event, fields),
    error: (event, fields) => write('error', event, fields),
  };
}
