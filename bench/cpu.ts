/** Measures the CPU time of the processes that take part in a measurement. */
import { readFileSync } from 'node:fs';
import { cpuSeconds, cpuSecondsWithEnded } from './child-process.ts';

/** The parties that share the machine, each with its process ids. Child processes count for their parent. */
export type Parties = Readonly<Record<string, readonly number[]>>;

/** User and system time in seconds, per party. */
export type CpuByParty = Record<string, number>;

export interface CpuMeter {
  /** CPU time since the meter was started. */
  read(): CpuByParty;
}

export function startCpuMeter(parties: Parties): CpuMeter {
  const before = readAll(parties);
  return {
    read() {
      const now = readAll(parties);
      return Object.fromEntries(Object.keys(parties).map((name) => [name, (now[name] ?? 0) - (before[name] ?? 0)]));
    },
  };
}

function readAll(parties: Parties): CpuByParty {
  const seconds = (pids: readonly number[]) => pids.reduce((sum, pid) => sum + secondsOfTree(pid), 0);
  return Object.fromEntries(Object.entries(parties).map(([name, pids]) => [name, seconds(pids)]));
}

/** CPU time of the process, its children, and its children that have ended. */
function secondsOfTree(pid: number): number {
  if (pid === process.pid) return cpuSeconds(pid); // its children are separate parties
  return childrenOf(pid).reduce((sum, child) => sum + secondsIfRunning(child), cpuSecondsWithEnded(pid));
}

function childrenOf(pid: number): number[] {
  return readFileSync(`/proc/${pid}/task/${pid}/children`, 'latin1').split(' ').filter(Boolean).map(Number);
}

function secondsIfRunning(pid: number): number {
  try {
    return cpuSeconds(pid);
  } catch {
    return 0; // the child has ended: the next reading of the parent includes its time
  }
}
