/**
 * Opens a store of an earlier release, the first being 0.1.0, and checks that this version keeps the promises of that one. The
 * due times in it have passed by now.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { examineStore } from '../../src/admin/examine.ts';
import { parseConfig } from '../../src/config/parse.ts';
import type { Config } from '../../src/config/table.ts';
import { type RunningServer, startServer } from '../../src/server/server.ts';
import { eventually } from '../support/eventually.ts';
import { freshDatabase } from '../support/postgres/shared.ts';
import { SILENT } from '../support/silent-log.ts';
import { ask, type Json } from './api.ts';
import { ENCRYPTION_KEY, readTold, restorePostgres, restoreSqlite, VERSIONS } from './fixture.ts';
import { EVENT, Outside } from './outside.ts';
import { logOf, type Told } from './story.ts';

/** What is finished is kept for as long as fixtures are. */
const SETTINGS = ['--port', '0', '--log-retention', '3650d', '--dlq-retention', '3650d'];
const GET = { method: 'GET' };

const STORES = VERSIONS.flatMap((version) => [
  { version, database: 'sqlite' as const },
  { version, database: 'postgres' as const },
]);

describe.each(STORES)('A store of migration $version on $database', ({ version, database }) => {
  const outside = new Outside({ ails: false });
  const dataDir = mkdtempSync(join(tmpdir(), 'waypost-upgraded-'));
  let told: Told;
  let config: Config;
  let server: RunningServer;
  beforeAll(async () => {
    told = readTold(version, database);
    await outside.open();
    const flags = [...SETTINGS, '--data-dir', dataDir];
    if (database === 'sqlite') restoreSqlite(version, outside.port, dataDir);
    else {
      const databaseUrl = await freshDatabase();
      await restorePostgres(version, outside.port, databaseUrl);
      flags.push('--database-url', databaseUrl);
    }
    config = parseConfig({ WAYPOST_ENCRYPTION_KEY: ENCRYPTION_KEY }, flags, { dev: true });
    const onFatal = (error: Error): never => {
      throw error;
    };
    server = await startServer(config, { credentials: 'development', log: SILENT, onFatal });
    outside.servedBy(server.url);
  });
  afterAll(async () => {
    await server.stop(0);
    await outside.close();
    rmSync(dataDir, { recursive: true });
  });

  const arrived = (messageId: string) => outside.arrivals().filter((arrival) => arrival.messageId === messageId);
  const ends = async (run: string, state: string) => {
    const ended = async () => (await logOf(server.url, run)).workflowState === state;
    await eventually(`${run} to come to ${state}`, ended);
    return (await logOf(server.url, run)).workflowRunResponse;
  };

  it('delivers what was under way, delayed, limited, or waited for another attempt', async () => {
    await eventually('all that is owed', () => told.owed.every(({ messageId }) => arrived(messageId).length > 0));
    for (const { path, messageId } of told.owed) expect(arrived(messageId)).toEqual([{ path, messageId }]);
  });

  it('calls back for what was under way', async () => {
    await eventually('twelve callbacks', () => outside.arrivals('/told-late').length === 12);
  });

  it('sends nothing again that was delivered or cancelled', async () => {
    await eventually('all that is owed', () => told.owed.every(({ messageId }) => arrived(messageId).length > 0));
    for (const messageId of told.over) expect(arrived(messageId)).toEqual([]);
  });

  it('keeps a paused queue and a paused key, and lets both go on in order', async () => {
    const { queue, key } = told.held;
    expect([...queue, ...key].flatMap(arrived)).toEqual([]);
    await ask(server.url, '/v2/queues/paused/resume');
    await ask(server.url, '/v2/flowControl/paused/resume');
    await eventually('the queue', () => outside.arrivals('/queued').length === queue.length);
    await eventually('the key', () => outside.arrivals('/keyed').length === key.length);
    expect(outside.arrivals('/queued').map(({ messageId }) => messageId)).toEqual(queue);
    expect(outside.arrivals('/keyed').map(({ messageId }) => messageId)).toEqual(key);
  });

  it('has the dead letters, and sends one again that is asked for', async () => {
    const [wanted] = told.dead.filter(({ messageId }) => messageId !== undefined);
    const listed: Json[] = (await ask(server.url, '/v2/dlq', GET)).messages;
    expect(listed.map(({ dlqId }) => dlqId)).toEqual(expect.arrayContaining(told.dead.map(({ dlqId }) => dlqId)));
    const before = outside.arrivals('/fails').length;
    const { messageId } = await ask(server.url, `/v2/dlq/retry/${wanted?.dlqId}`);
    await eventually(
      'the dead letter',
      () => outside.arrivals('/fails').length > before && arrived(messageId).length === 1,
    );
  });

  it('goes on with a schedule, and leaves a paused one alone', async () => {
    await eventually('the missed time', () => outside.arrivals('/scheduled').length > 0);
    const schedules: Json[] = await ask(server.url, '/v2/schedules', GET);
    const paused = Object.fromEntries(schedules.map(({ scheduleId, isPaused }) => [scheduleId, isPaused === true]));
    expect(paused).toEqual({ [told.schedules.active]: false, [told.schedules.paused]: true });
    expect(outside.arrivals('/never-scheduled')).toEqual([]);
  });

  it('brings runs to their end: one that sleeps, one that was invoked, one whose deadline is over', async () => {
    expect(await ends(told.runs.sleeps, 'RUN_SUCCESS')).toBe('"early and late"');
    expect(await ends(told.runs.invokes, 'RUN_SUCCESS')).toBe('"my child says early and late"');
    expect(await ends(told.runs.waitsInVain, 'RUN_SUCCESS')).toBe('"alone"');
  });

  it('lets a run go on that waits for an event, and not the one that was cancelled', async () => {
    await ask(server.url, `/v2/notify/${EVENT}`, { body: '"a lot"' });
    expect(await ends(told.runs.waits, 'RUN_SUCCESS')).toBe('"a lot"');
    expect((await logOf(server.url, told.runs.cancelled)).workflowState).toBe('RUN_CANCELED');
    expect((await logOf(server.url, told.runs.ends)).workflowState).toBe('RUN_SUCCESS');
  });

  it('resumes a failed run from the step that failed', async () => {
    const { messages } = await ask(server.url, `/v2/workflows/dlq?workflowRunId=${told.runs.fails}`, GET);
    const resumed = await ask(server.url, `/v2/workflows/dlq/resume/${messages[0].dlqId}`);
    expect(await ends(resumed.workflowRunId, 'RUN_SUCCESS')).toBe('"mended"');
  });

  it('is sound', async () => {
    const { findings } = await examineStore(config);
    expect(findings.flatMap(({ offenders }) => offenders)).toEqual([]);
  });
});
