/**
 * Tests work of runs that falls due while the server is down: only the server itself can start this work after its
 * restart.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { eventually } from '../../support/eventually.ts';
import { Client } from '../client.ts';
import { openDiary } from './diary.ts';
import { EmbeddedServer } from './embedded-server.ts';
import { Processes } from './processes.ts';
import { eventOf, PERSISTENT, type ProgramName } from './programs.ts';
import { type LoggedRun, readRunView } from './run-view.ts';
import type { Servers } from './servers.ts';

const TAG = 'tag-1';
/** Longer than the waits and sleeps of the programs in this file. */
const DEAD_MS = 1_500;

class Ground {
  readonly processes: Processes;
  readonly client: Client;

  constructor(processes: Processes, servers: Servers) {
    this.processes = processes;
    this.client = new Client(servers.url);
  }

  async trigger(program: ProgramName): Promise<void> {
    const headers = {
      'Upstash-Workflow-RunId': runIdOf(program),
      'Upstash-Retries': String(PERSISTENT.retries),
      'Upstash-Retry-Delay': PERSISTENT.retryDelay,
    };
    const body = JSON.stringify({ tag: TAG, third: '' });
    const path = `/v2/trigger/${this.processes.appUrl}/programs/${program}`;
    expect(await this.client.call('POST', path, headers, body)).toMatchObject({ kind: 'ok' });
  }

  async waiters(): Promise<unknown[]> {
    const reply = await this.client.call('GET', `/v2/waiters/${eventOf(TAG)}`);
    return reply.kind === 'ok' ? (reply.json as unknown[]) : [];
  }

  /** The types of the steps in the journal of an active run. */
  async recorded(program: ProgramName): Promise<string[]> {
    const reply = await this.client.call('GET', `/v2/workflows/runs/${runIdOf(program)}`);
    const entries = reply.kind === 'ok' ? (reply.json as { body: string }[]).slice(1) : [];
    return entries.map(
      ({ body }) => (JSON.parse(Buffer.from(body, 'base64').toString()) as { stepType: string }).stepType,
    );
  }

  /** The returned lines of a run. */
  async returned(program: ProgramName): Promise<string[]> {
    await eventually('the end of the run', () => this.hasEnded(program));
    return JSON.parse((await this.#run(program))?.response ?? '') as string[];
  }

  async hasEnded(program: ProgramName): Promise<boolean> {
    return (await this.#run(program))?.states[1] === 'RUN_SUCCESS';
  }

  async #run(program: ProgramName): Promise<LoggedRun | undefined> {
    const { runs } = await readRunView(this.client);
    return runs.find(({ runId }) => runId === runIdOf(program));
  }
}

const runIdOf = (program: ProgramName) => `wfr_${program}`;

const restarted = test.extend<{ ground: Ground }>({
  // biome-ignore lint/correctness/noEmptyPattern: vitest reads the required fixtures from this pattern
  ground: async ({}, use) => {
    const folder = mkdtempSync(join(tmpdir(), 'waypost-restart-'));
    const diaryPath = join(folder, 'diary.jsonl');
    const diary = openDiary(diaryPath);
    const servers = await EmbeddedServer.prepare(folder);
    const processes = await Processes.prepare({ servers, library: 'official', diary, diaryPath });
    const ground = new Ground(processes, servers);
    try {
      await processes.start();
      await use(ground);
    } finally {
      await ground.client.close();
      await Promise.all([processes.close(), servers.close()]);
      diary.close();
      rmSync(folder, { recursive: true, force: true });
    }
  },
});

restarted('wakes what should have woken while server and app were dead', async ({ ground }) => {
  await ground.trigger('sleeps');
  const steps = await eventually('the second sleep', async () => {
    const recorded = await ground.recorded('sleeps');
    return recorded.includes('SleepUntil') && recorded;
  });
  await ground.trigger('races');
  // If the machine stalls for a second, the wait is over before it is observed.
  await eventually('the wait', async () => (await ground.waiters()).length === 1 || (await ground.hasEnded('races')));
  await ground.processes.kill('both');
  await sleep(DEAD_MS);
  await ground.processes.start();
  expect(steps).toEqual(['Run', 'SleepFor', 'Run', 'SleepUntil']);
  expect(await ground.returned('races')).toEqual(['expired', expect.stringMatching(/^after of tag-1#/)]);
  expect(await ground.returned('sleeps')).toEqual([
    expect.stringMatching(/^before of tag-1#/),
    expect.stringMatching(/^after of tag-1#/),
  ]);
});
