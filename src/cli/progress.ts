/** Shows how far long work is. On standard error, since standard output is for the result. */
import type { Terminal } from './command.ts';

const BAR_LENGTH = 24;

export interface Progress {
  /** `total`: how many there will be, if that is known. */
  tell(done: number, total?: number, noun?: string): void;
  /** For the end of the work. */
  end(): void;
}

/** One line that is written over and over, where somebody looks on; nothing elsewhere. */
export function progressOf({ ask, complain }: Terminal): Progress {
  let last = '';
  return {
    tell(done, total, noun = '') {
      if (ask === undefined) return;
      const share = total === undefined || total === 0 ? undefined : Math.min(1, done / total);
      const bar = share === undefined ? '' : `[${'#'.repeat(Math.floor(share * BAR_LENGTH)).padEnd(BAR_LENGTH)}] `;
      const text = `${bar}${done}${total === undefined ? '' : ` of ${total}`} ${noun}`.trimEnd();
      complain(`\r${text.padEnd(last.length)}`);
      last = text;
    },
    end() {
      if (last !== '') complain('\n');
      last = '';
    },
  };
}

export interface CopyReport {
  onProgress: (progress: { table: string; rows: number }) => void;
}

/** Rows for each line of output where nobody looks on: only large tables get lines, and few enough to keep a log readable. */
const ROWS_PER_LINE = 100_000;

export function reportCopy(terminal: Terminal): CopyReport & Progress {
  const progress = progressOf(terminal);
  let told = 0;
  let last = '';
  return {
    ...progress,
    onProgress: ({ table, rows }) => {
      if (table !== last) told = 0;
      last = table;
      progress.tell(rows, undefined, `rows of ${table}`);
      if (terminal.ask !== undefined || rows < told + ROWS_PER_LINE) return;
      told = rows - (rows % ROWS_PER_LINE);
      terminal.complain(`${table}: ${rows} rows\n`);
    },
  };
}
