/** Shows the progress of long operations on standard error, since standard output is for the result. */
import type { Terminal } from './command.ts';

const BAR_LENGTH = 24;

export interface Progress {
  /** `total`: the final number, if it is known. */
  report(done: number, total?: number, noun?: string): void;
  /** Call it when the operation ends. */
  end(): void;
}

/** Shows the progress in one line that each report overwrites. Shows nothing without an interactive terminal. */
export function progressOf({ ask, printError }: Terminal): Progress {
  let last = '';
  return {
    report(done, total, noun = '') {
      if (ask === undefined) return;
      const share = total === undefined || total === 0 ? undefined : Math.min(1, done / total);
      const bar = share === undefined ? '' : `[${'#'.repeat(Math.floor(share * BAR_LENGTH)).padEnd(BAR_LENGTH)}] `;
      const text = `${bar}${done}${total === undefined ? '' : ` of ${total}`} ${noun}`.trimEnd();
      printError(`\r${text.padEnd(last.length)}`);
      last = text;
    },
    end() {
      if (last !== '') printError('\n');
      last = '';
    },
  };
}

export interface CopyReport {
  onProgress: (progress: { table: string; rows: number }) => void;
}

/**
 * Without an interactive terminal, one line is printed per this many rows of a table: only large tables get lines, and a
 * log stays readable.
 */
const ROWS_PER_LINE = 100_000;

export function reportCopy(terminal: Terminal): CopyReport & Progress {
  const progress = progressOf(terminal);
  let reported = 0;
  let last = '';
  return {
    ...progress,
    onProgress: ({ table, rows }) => {
      if (table !== last) reported = 0;
      last = table;
      progress.report(rows, undefined, `rows of ${table}`);
      if (terminal.ask !== undefined || rows < reported + ROWS_PER_LINE) return;
      reported = rows - (rows % ROWS_PER_LINE);
      terminal.printError(`${table}: ${rows} rows\n`);
    },
  };
}
