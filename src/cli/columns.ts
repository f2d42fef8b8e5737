/** Formats tables and times for a terminal. */

/** Formats a table whose columns are as wide as their content. The first row of `rows` has the headings. */
export function columns(rows: readonly (readonly string[])[]): string {
  const widths: number[] = [];
  for (const row of rows)
    row.forEach((cell, at) => {
      widths[at] = Math.max(widths[at] ?? 0, cell.length);
    });
  const lines = rows.map((row) =>
    row
      .map((cell, at) => cell.padEnd(widths[at] ?? 0))
      .join('  ')
      .trimEnd(),
  );
  return `${lines.join('\n')}\n`;
}

/** Formats a time as `2026-01-31 13:05`, in the time zone of the machine. */
export function minuteOf(ms: number): string {
  return timeOf(ms).slice(0, 16).replace('T', ' ');
}

/** The heading of a column of times from `minuteOf`, such as `CREATED (Europe/Berlin)`. */
export function inZone(heading: string): string {
  return `${heading} (${zone()})`;
}

/** The time zone of the machine, or the time zone in the variable `TZ`, such as `Europe/Berlin`. */
export function zone(): string {
  return Intl.DateTimeFormat().resolvedOptions().timeZone;
}

/** Formats a time as `2026-01-31T14:05:09.123+01:00`, in the time zone of the machine. `Z` stands for UTC. */
export function timeOf(ms: number): string {
  const offsetMinutes = -new Date(ms).getTimezoneOffset();
  if (offsetMinutes === 0) return isoOf(ms);
  const local = isoOf(ms + offsetMinutes * 60_000).slice(0, -1);
  const [hours, minutes] = [Math.floor(Math.abs(offsetMinutes) / 60), Math.abs(offsetMinutes) % 60];
  return `${local}${offsetMinutes < 0 ? '-' : '+'}${twoDigits(hours)}:${twoDigits(minutes)}`;
}

/** Formats a time as `2026-01-31T13:05:09.123Z`, for output that programs read. */
export function isoOf(ms: number): string {
  return new Date(ms).toISOString();
}

function twoDigits(value: number): string {
  return String(value).padStart(2, '0');
}
