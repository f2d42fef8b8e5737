/** What do the processes of a measurement cost, and which of them is busy all the time? */
import { readFileSync } from 'node:fs';
import { cpuSeconds, cpuSecondsWithEnded } from './child-process.ts';

/** Those who share the machine, each with the ids of its processes; a child of one belongs to it as well. */
export type Parties = Readonly<Record<string, readonly number[]>>;

/** User and system time in seconds, by party. */
export type CpuByParty = Record<string, number>;

export interface CpuMeter {
  /** Since the meter was started. */
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

/** Of the process, of its children, and of those that it has seen end. */
function secondsOfTree(pid: number): number {
  if (pid === process.pid) return cpuSeconds(pid); // its children are parties of their own
  return childrenOf(pid).reduce((sum, child) => sum + secondsIfThere(child), cpuSecondsWithEnded(pid));
}

function childrenOf(pid: number): number[] {
  return readFileSync(`/proc/${pid}/task/${pid}/children`, 'latin1').split(' ').filter(Boolean).map(Number);
}

function secondsIfThere(pid: number): number {
  try {
    return cpuSeconds(pid);
  } catch {
    return 0; // it has ended since; its parent has the time at the next reading
  }
}
