/** Parses a systemd unit. */
import { readText, type Workload } from './workloads.ts';

/** The last value of each name; sections do not matter, since no name is in two. */
export function readUnit(path: string): Map<string, string> {
  return new Map(linesOf(path));
}

export function unitWorkload(path: string): Workload {
  const unit = readUnit(path);
  const env = linesOf(path)
    .filter(([name]) => name === 'Environment')
    .map(([, assignment]): [string, string] => {
      const [variable = '', value = ''] = assignment.split('=');
      return [variable, value];
    });
  return {
    name: path,
    args: (unit.get('ExecStart') ?? '').split(' ').slice(1),
    env: Object.fromEntries(env),
    stopLimitS: Number(unit.get('TimeoutStopSec')),
    pauseBeforeSignalS: 0,
    memoryLimitBytes: undefined,
  };
}

function linesOf(path: string): [name: string, value: string][] {
  return readText(path)
    .split('\n')
    .filter((line) => line !== '' && !/^[#[]/.test(line))
    .map((line) => {
      const at = line.indexOf('=');
      if (at < 0) throw new Error(`${path}: "${line}" assigns nothing`);
      return [line.slice(0, at), line.slice(at + 1)];
    });
}
