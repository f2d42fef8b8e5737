/** How does who waits for a long copy see that it goes on? */
import type { Terminal } from './command.ts';

export interface ProgressReport {
  onProgress: (progress: { table: string; rows: number }) => void;
}

/** A line for each table that takes long, and for each so many rows: not so many that a log of them is a nuisance. */
const ROWS_PER_LINE = 100_000;

/** On standard error, since standard output is for what came of it. */
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
