/** Limits the log lines per second and event, so that a flood of events cannot fill the disk. */
import type { Clock, EventLog } from '../engine/ports.ts';

type Level = keyof EventLog;

const WINDOW_MS = 1000;

/** The maximum of lines of one event per second: more lines than people read, but few enough for any disk. */
const LINES_PER_SECOND_MAX = 20;

/**
 * Returns a log that writes at most `linesMax` lines of each event per second to `log`, and then one line with the number
 * of omitted events.
 */
export function sampledLog(log: EventLog, clock: Clock, linesMax = LINES_PER_SECOND_MAX): EventLog {
  const windows = new Map<string, { startedAtMs: number; count: number }>();

  function write(level: Level, event: string, fields?: Parameters<EventLog[Level]>[1]): void {
    let window = windows.get(event);
    if (window === undefined || (window.count <= linesMax && clock.elapsedMs - window.startedAtMs >= WINDOW_MS)) {
      window = { startedAtMs: clock.elapsedMs, count: 0 };
      windows.set(event, window);
    }
    window.count += 1;
    if (window.count <= linesMax) return log[level](event, fields);
    // Only the first omitted event starts a timer, which reports all omitted events even if no further event follows.
    if (window.count > linesMax + 1) return;
    const { count, startedAtMs } = window;
    clock.startTimer(Math.max(0, startedAtMs + WINDOW_MS - clock.elapsedMs), () => {
      const omitted = (windows.get(event)?.count ?? count) - linesMax;
      windows.delete(event);
      log[level]('events_left_out', { kind: event, count: omitted });
    });
  }

  return {
    debug: (event, fields) => write('debug', event, fields),
    info: (event, fields) => write('info', event, fields),
    warn: (event, fields) => write('warn', event, fields),
    error: (event, fields) => write('error', event, fields),
  };
}
