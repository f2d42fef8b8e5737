/** A server returns freed memory to the system, however it is started. This needs settings that a process reads at its start. */
import { readFileSync } from 'node:fs';
import { afterEach, describe, expect, it } from 'vitest';
import { runWaypost, WaypostProcess } from '../support/waypost-process.ts';

const DEV = ['dev', '--memory', '--port', '0', '--log-format', 'json'];
const OWN = { MALLOC_MMAP_THRESHOLD_: '65536', MALLOC_TRIM_THRESHOLD_: '65536' };

let server: WaypostProcess | undefined;
afterEach(() => server?.kill());

/** The settings of a process, as the system knows them. */
function settingsOf({ pid }: WaypostProcess): string[] {
  const read = (name: string) => readFileSync(`/proc/${pid}/${name}`, 'utf8').split('\0');
  return [...read('environ'), ...read('cmdline')].filter((each) => /^MALLOC_|^--max-semi-space/.test(each)).sort();
}

describe.runIf(process.platform === 'linux')('a server', () => {
  it('has the settings in the very process that plain node started, which ends as ever', async () => {
    server = new WaypostProcess(DEV);
    await server.url();
    expect(settingsOf(server)).toEqual([
      '--max-semi-space-size=32',
      'MALLOC_MMAP_THRESHOLD_=131072',
      'MALLOC_TRIM_THRESHOLD_=131072',
    ]);
    server.signal('SIGTERM');
    expect(await server.waitForExit()).toMatchObject({ code: 0, signal: null });
  });

  it('keeps the settings that it was started with', async () => {
    server = new WaypostProcess(DEV, OWN, undefined, ['--max-semi-space-size=16']);
    await server.url();
    expect(settingsOf(server)).toEqual([
      '--max-semi-space-size=16',
      'MALLOC_MMAP_THRESHOLD_=65536',
      'MALLOC_TRIM_THRESHOLD_=65536',
    ]);
  });

  it('keeps a size of the heap that NODE_OPTIONS has', async () => {
    server = new WaypostProcess(DEV, { ...OWN, NODE_OPTIONS: '--max-semi-space-size=16' });
    await server.url();
    expect(settingsOf(server)).toEqual(['MALLOC_MMAP_THRESHOLD_=65536', 'MALLOC_TRIM_THRESHOLD_=65536']);
  });

  it('that cannot start ends with the exit code that says so, and no warning of Node', async () => {
    const { code, stderr } = await runWaypost([...DEV, '--parallelism', 'many']);
    expect(code).toBe(2);
    expect(stderr).not.toContain('Warning');
  });
});
