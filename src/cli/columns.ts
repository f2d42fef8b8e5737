/** Prints rows as a table, with columns as wide as their content. */

/** One line for each row; the first row is the headings. */
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

/** `2026-01-31 13:05`, in UTC. */
export function minuteOf(ms: number): string {
  return timeOf(ms).slice(0, 16).replace('T', ' ');
}

/** `2026-01-31T13:05:09.123Z` */
export function timeOf(ms: number): string {
  return new Date(ms).toISOString();
}
