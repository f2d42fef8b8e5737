/** Finds the offset of a time zone at a given time. */
import { memo } from '../memo.ts';

/** The local time of a region, whose offset changes with daylight saving time and with laws. */
export interface TimeZone {
  /** Canonical IANA name. */
  readonly name: string;
  /** Milliseconds by which local clocks are ahead of UTC at `timeMs` (Unix ms). */
  offsetMsAt(timeMs: number): number;
}

export const UTC: TimeZone = { name: 'UTC', offsetMsAt: () => 0 };

const LOCAL_TIME = /^(\d+)\/(\d+)\/(\d+), (\d+):(\d+):(\d+)$/;

/**
 * The zone with an IANA name, in any letter case; `undefined` when there is none. Offsets such as `+05:00` are not
 * names.
 */
export function readTimeZone(name: string): TimeZone | undefined {
  const canonical = canonicalName(name);
  return canonical === '' ? undefined : zoneOf(canonical);
}

const canonicalName: (name: string) => string = memo((name) => {
  if (!/^[A-Za-z]/.test(name)) return '';
  try {
    return new Intl.DateTimeFormat('en-US', { timeZone: name }).resolvedOptions().timeZone;
  } catch (error) {
    if (error instanceof RangeError) return '';
    throw error;
  }
});

/** Cached by canonical name, so that each zone has only one formatter: formatters are large. */
const zoneOf: (canonical: string) => TimeZone = memo((canonical) => {
  if (canonical === 'UTC') return UTC;
  const { format } = new Intl.DateTimeFormat('en-US', {
    timeZone: canonical,
    hourCycle: 'h23',
    year: 'numeric',
    month: '2-digit',
    day: '2-digit',
    hour: '2-digit',
    minute: '2-digit',
    second: '2-digit',
  });
  return {
    name: canonical,
    offsetMsAt: (timeMs) => {
      const secondMs = Math.floor(timeMs / 1000) * 1000;
      const [, month, day, year, hour, minute, second] = LOCAL_TIME.exec(format(secondMs)) ?? [];
      const localMs = Date.UTC(
        Number(year),
        Number(month) - 1,
        Number(day),
        Number(hour),
        Number(minute),
        Number(second),
      );
      return localMs - secondMs;
    },
  };
});
