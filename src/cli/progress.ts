/** Shows the progress of a long copy. */
import type { Terminal } from './command.ts';

export interface ProgressReport {
  onProgress: (progress: { table: string; rows: number }) => void;
}

/** Rows for each line of output: only large tables get lines, and few enough to keep a log readable. */
const ROWS_PER_LINE = 100_000;

/** Prints on standard error, since standard output is for the result. */
export function reportProgress(terminal: Terminal): ProgressReport {
  let told = 0;
  let last = '';
  return {
    onProgress: ({ table, rows }) => {
      if (table !== last) told = 0;
      last = table;
      if (rows < told + ROWS_PER_LINE) return;
      told = rows - (rows % ROWS_PER_LINE);
      terminal.complain(`${table}: ${rows} rows\n`);
    },
  };
}
