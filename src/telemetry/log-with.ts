/** Returns a log that adds the same fields to every line, such as the worker that writes the line. */
import type { EventLog } from '../engine/ports.ts';

export function logWith(log: EventLog, more: Record<string, string>): EventLog {
  return {
    debug: (event, fields = {}) => log.debug(event, { ...fields, ...more }),
    info: (event, fields = {}) => log.info(event, { ...fields, ...more }),
    warn: (event, fields = {}) => log.warn(event, { ...fields, ...more }),
    error: (event, fields = {}) => log.error(event, { ...fields, ...more }),
  };
}
