/** Formats a table under a title: the first column is left-aligned, the others are right-aligned. */
export function table(title: string, columns: string[], rows: string[][]): string {
  const widths = columns.map((column, i) => Math.max(column.length, ...rows.map((row) => row[i]?.length ?? 0)));
  const line = (cells: string[]) =>
    cells.map((cell, i) => (i === 0 ? cell.padEnd(widths[i] ?? 0) : cell.padStart(widths[i] ?? 0))).join('  ');
  return [`${title}:`, line(columns), line(widths.map((width) => '-'.repeat(width))), ...rows.map(line)].join('\n');
}
