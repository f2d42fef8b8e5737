/**
 * Records what happened in the user's app, in a file that outlives its processes. Each line is written before the response that
 * reveals it, so a killed process forgets nothing that others have learned.
 */
import { closeSync, openSync, readFileSync, writeSync } from 'node:fs';
import type { LibraryName } from './libraries.ts';

/** An entry of a journal, as delivered. */
export interface DeliveredEntry {
  messageId: string;
  /** Encoded as base64. */
  body: string;
  callType: string;
}

export type DiaryLine =
  /** An attempt has arrived completely. */
  | {
      kind: 'delivered';
      /** The name of this attempt in the lines about it. */
      call: string;
      /** The library that handles the attempt. */
      library: LibraryName;
      runId: string;
      createdAt: number;
      /** The last segment of the URL. */
      program: string;
      messageId: string;
      retried: number;
      /** `undefined` if the body is not a journal: it is then the response to a call, or the report of a failure. */
      journal?: DeliveredEntry[];
    }
  /** The execution of a step has started, by the handler of the call with this number. */
  | { kind: 'executed'; call: string; hand: number; runId: string; step: string }
  /** The server has acknowledged that it saved this result, and the call continues with it. */
  | { kind: 'kept'; call: string; hand: number; runId: string; step: string; messageId: string; body: string }
  /** The new entries that an idle call received instead of another delivery. */
  | { kind: 'handed over'; call: string; hand: number; runId: string; entries: DeliveredEntry[] }
  /** The server has told the call to stop. */
  | { kind: 'stopped'; call: string; hand: number; runId: string; reason: string }
  /** The failure function of a run was called, or its failure callback has arrived. */
  | { kind: 'told of failure'; runId: string }
  /** The server was restarted: later attempts come from another process. */
  | { kind: 'server ended' };

/** An attempt, and the checkpoints after which the same call continues. */
const PROGRESS = /^\{"kind":"(delivered|kept|handed over)"/;

export interface Diary {
  write(line: DiaryLine): void;
  close(): void;
}

/** Several processes may write to one file: each line is one write to a file opened to be appended to. */
export function openDiary(path: string): Diary {
  const file = openSync(path, 'a');
  return {
    write: (line) => void writeSync(file, `${JSON.stringify(line)}\n`),
    close: () => closeSync(file),
  };
}

/** The number of lines about progress, by any process. Reads only the lines that were written since the last call. */
export class ProgressCount {
  readonly #file: number;
  #rest = '';
  #count = 0;

  constructor(path: string) {
    this.#file = openSync(path, 'r');
  }

  soFar(): number {
    const lines = (this.#rest + readFileSync(this.#file, 'utf8')).split('\n');
    this.#rest = lines.pop() ?? '';
    this.#count += lines.filter((line) => PROGRESS.test(line)).length;
    return this.#count;
  }

  close(): void {
    closeSync(this.#file);
  }
}

export function readDiary(path: string): DiaryLine[] {
  const lines = readFileSync(path, 'utf8').split('\n');
  return lines.filter((line) => line !== '').map((line) => JSON.parse(line) as DiaryLine);
}
