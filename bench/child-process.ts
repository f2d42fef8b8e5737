/**
 * Starts a Node program as a child process, waits until the program logs its address, reads its resource usage, and
 * ends the process by its process id. Used by the benchmarks and by the tests that kill the real server.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';

export interface Exit {
  code: number | null;
  signal: NodeJS.Signals | null;
}

export interface ListeningProcess {
  url: string;
  pid: number;
  /** Time from the spawn to the log line with the address. */
  startMs: number;
  /** Resolves once the process has ended, for whatever reason. */
  exited: Promise<Exit>;
  /** Sends `signal` to this process alone and resolves once the process has ended. */
  end(signal: NodeJS.Signals): Promise<Exit>;
  /** The last lines of the process's output, for error messages. */
  output(): string;
}

export interface StartOptions {
  /** Added to this process's own environment. */
  env?: Record<string, string>;
  /** Time limit of the start, after which the process is killed. */
  startLimitMs?: number;
  /** Called with each line of output. */
  onLine?: (line: string) => void;
}

// Enough to show why a start failed, and little memory even after a million lines.
const OUTPUT_LINES_MAX = 60;

/** Runs `node <argv>`. Rejects with the output if the process ends, or the time limit is reached, before it listens. */
export async function startListening(argv: string[], options: StartOptions = {}): Promise<ListeningProcess> {
  const startedAt = performance.now();
  const child = spawn(process.execPath, argv, {
    env: { ...process.env, ...options.env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const lines: string[] = [];
  const exited = new Promise<Exit>((resolve) => {
    child.once('exit', (code, signal) => resolve({ code, signal }));
  });
  const output = () => lines.join('\n');
  const url = await listeningUrl(child, lines, exited, options);
  const pid = child.pid;
  if (pid === undefined) throw new Error('a listening process has no id');
  return {
    url,
    pid,
    startMs: performance.now() - startedAt,
    exited,
    output,
    end: (signal) => {
      child.kill(signal);
      return exited;
    },
  };
}

/** Reads both streams for as long as the process runs, so that the process never blocks on a full pipe. */
function listeningUrl(
  child: ChildProcess,
  lines: string[],
  exited: Promise<Exit>,
  { startLimitMs: limitMs = 30_000, onLine }: StartOptions,
): Promise<string> {
  return new Promise((resolve, reject) => {
    const limit = setTimeout(() => {
      child.kill('SIGKILL');
      reject(new Error(`not listening after ${limitMs} ms:\n${lines.join('\n')}`));
    }, limitMs);
    for (const stream of [child.stdout, child.stderr]) {
      if (stream === null) continue;
      createInterface({ input: stream }).on('line', (line) => {
        onLine?.(line);
        lines.push(line);
        if (lines.length > OUTPUT_LINES_MAX) lines.shift();
        const url = announcedUrl(line);
        if (url === undefined) return;
        clearTimeout(limit);
        resolve(url);
      });
    }
    child.once('error', reject);
    void exited.then(({ code, signal }) => {
      clearTimeout(limit);
      reject(new Error(`exited before it listened (code ${code}, signal ${signal}):\n${lines.join('\n')}`));
    });
  });
}

function announcedUrl(line: string): string | undefined {
  if (!line.includes('"listening"')) return undefined;
  try {
    const entry = JSON.parse(line) as { event?: unknown; url?: unknown };
    return entry.event === 'listening' && typeof entry.url === 'string' ? entry.url : undefined;
  } catch {
    return undefined; // a text line that contains the word
  }
}

// The value of `getconf CLK_TCK` on every Linux that Node supports.
const CLOCK_TICKS_PER_SECOND = 100;

/** User and system CPU time of all threads of `pid` since it started, in seconds. */
export function cpuSeconds(pid: number): number {
  const { user, system } = cpuTimes(pid);
  return user + system;
}

/** CPU time of all threads of `pid` and of its ended children, in seconds. */
export function cpuSecondsWithEnded(pid: number): number {
  const { user, system, endedUser, endedSystem } = cpuTimes(pid);
  return user + system + endedUser + endedSystem;
}

function cpuTimes(pid: number): Record<'user' | 'system' | 'endedUser' | 'endedSystem', number> {
  const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
  // The program's name is in parentheses and may contain spaces, so fields are counted after it.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const seconds = (field: number) => Number(fields[field]) / CLOCK_TICKS_PER_SECOND;
  return { user: seconds(11), system: seconds(12), endedUser: seconds(13), endedSystem: seconds(14) };
}

/** Resident memory of `pid` now, in MiB. */
export function residentMebibytes(pid: number): number {
  return memoryOf(pid, /^VmRSS:\s+(\d+) kB$/m);
}

/** Peak resident memory of `pid`, in MiB. */
export function residentPeakMebibytes(pid: number): number {
  return memoryOf(pid, /^VmHWM:\s+(\d+) kB$/m);
}

function memoryOf(pid: number, line: RegExp): number {
  const match = line.exec(readFileSync(`/proc/${pid}/status`, 'latin1'));
  if (match === null) throw new Error(`no resident memory known for process ${pid}`);
  return Number(match[1]) / 1024;
}
