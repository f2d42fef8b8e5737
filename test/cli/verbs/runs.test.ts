/** `waypost runs` with a running server. */
import { createServer } from 'node:http';
import { expect, it } from 'vitest';
import { DEVELOPMENT_ACCOUNTS } from '../../../src/config/development.ts';
import { eventually } from '../../support/eventually.ts';
import { listen, originOf } from '../../support/listen.ts';
import type { CommandResult } from '../../support/waypost-command.ts';
import { askedServer, NOBODY } from './support.ts';

const WORKFLOW = `${NOBODY}/wf`;

const server = askedServer();
const runs = (...args: string[]): Promise<CommandResult> => server.waypost('runs', ...args);

async function trigger(runId: string, headers: Record<string, string>): Promise<void> {
  const authorization = `Bearer ${DEVELOPMENT_ACCOUNTS[0].token}`;
  const asked = { authorization, 'upstash-workflow-runid': runId, ...headers };
  expect((await fetch(`${server.url}/v2/trigger/${WORKFLOW}`, { method: 'POST', headers: asked })).status).toBe(200);
}

/** As the client of a library does. */
async function begin(runId: string, destination: string): Promise<void> {
  const authorization = `Bearer ${DEVELOPMENT_ACCOUNTS[0].token}`;
  const headers = {
    'upstash-workflow-init': 'true',
    'upstash-workflow-runid': runId,
    'upstash-workflow-url': destination,
    'upstash-workflow-sdk-version': '1',
    'upstash-feature-set': 'LazyFetch,InitialBody,WF_TriggerOnConfig',
    'upstash-retries': '0',
  };
  const body = JSON.stringify([{ destination, headers, body: '{}' }]);
  expect((await fetch(`${server.url}/v2/batch`, { method: 'POST', headers: { authorization }, body })).status).toBe(
    200,
  );
}

async function failed(runId: string, headers: Record<string, string> = {}): Promise<string> {
  await trigger(runId, { 'upstash-retries': '0', ...headers });
  return eventually(
    () => `the run ${runId} to fail`,
    async () => (JSON.parse((await runs('show', runId, '--json')).stdout) as { dlqId?: string }).dlqId,
  );
}

it('shows a run step by step, and lists it among others', async () => {
  await failed('wfr_a');
  await trigger('wfr_b', { 'upstash-delay': '1h', 'upstash-label': 'late' });
  const { stdout } = await runs('show', 'wfr_a');
  expect(stdout).toMatch(/^✗ {2}wfr_a {2}FAILED\n {3}http:\/\/127\.0\.0\.1:9\/wf\n/);
  expect(stdout).toMatch(/✓ {2}init .* Initial {2}SUCCESS/);
  expect(stdout).toMatch(/✗ {2}\(next step\) .* 1 of 1 attempts failed, /);
  expect(stdout).toContain('\n   failed: connection refused\n');
  const listed = (await runs()).stdout.split('\n').map((line) => line.split(/ {2,}/)[0]);
  expect(listed).toEqual(['RUN', 'wfr_b', 'wfr_a', '']);
  expect((await runs('list', '--label', 'late', '--state', 'active')).stdout).toMatch(/wfr_b {2}STARTED/);
});

it('cancels, resumes and restarts by the name of a run', async () => {
  await trigger('wfr_c', { 'upstash-delay': '1h' });
  expect(await runs('cancel', 'wfr_c', 'wfr_unknown', '--yes')).toMatchObject({
    code: 0,
    stdout: 'Cancelled 1 run.\n',
  });
  expect(await runs('cancel', 'wfr_c', '--yes')).toMatchObject({
    code: 3,
    stderr: 'waypost: no runs match\n',
  });
  await failed('wfr_d');
  const [, resumed = ''] = /^Resumed as (wfr_[\w-]+)\.\n$/.exec((await runs('resume', 'wfr_d')).stdout) ?? [];
  expect((await runs('show', 'wfr_d')).stdout).toContain(`\n   retried as ${resumed}\n`);
  expect((await runs('show', resumed)).stdout).toContain('\n   retry of wfr_d\n');
  const dlqId = await failed('wfr_e');
  expect((await runs('restart', dlqId)).stdout).toMatch(/^Restarted as wfr_\w+\.\n$/);
  expect(await runs('resume', 'wfr_e')).toMatchObject({
    code: 3,
    stderr: 'waypost: there is no run "wfr_e" in the DLQ\n',
  });
});

it('tries again at once what is parked: one run, or all', async () => {
  const journeys = new Map<string, number>();
  const app = createServer((request, response) => {
    const path = request.url ?? '';
    journeys.set(path, (journeys.get(path) ?? 0) + 1);
    request.resume();
    response.writeHead(409, { 'upstash-workflow-code-changed': 'true', 'upstash-workflow-sdk': 'test' });
    response.end('{"message":"Both sides."}');
  });
  await listen(app);
  for (const id of ['wfr_p1', 'wfr_p2']) await begin(id, `${originOf(app)}/${id}`);
  const parked = (count: number) =>
    eventually(
      () => `${count} parked runs`,
      async () => JSON.parse((await runs('list', '--state', 'parked', '--json')).stdout).length === count,
    );
  await parked(2);
  expect((await runs('show', 'wfr_p1')).stdout).toMatch(/‖ .* PARKED .* Both sides\., next attempt at /);
  expect(await runs('resume', 'wfr_p1')).toMatchObject({ code: 0, stdout: 'Resumed the parked run.\n' });
  await eventually('another attempt', async () => journeys.get('/wfr_p1') === 2);
  await parked(2);
  expect(await runs('resume', '--parked')).toMatchObject({ code: 0, stdout: 'Resumed 2 parked runs.\n' });
  await eventually('more attempts', async () => journeys.get('/wfr_p1') === 3 && journeys.get('/wfr_p2') === 2);
  expect(await runs('resume', '--parked', 'wfr_p1')).toMatchObject({ code: 2 });
  await parked(2);
  await runs('cancel', 'wfr_p1', 'wfr_p2', '--yes');
  expect(await runs('resume', '--parked')).toMatchObject({ code: 0, stdout: 'Resumed 0 parked runs.\n' });
  app.closeAllConnections();
  app.close();
});

it('resumes, restarts and deletes many failed runs, counted first', async () => {
  for (const id of ['wfr_m1', 'wfr_m2', 'wfr_m3', 'wfr_m4']) await failed(id, { 'upstash-label': 'many' });
  const many = ['--label', 'many'];
  expect(await runs('resume', ...many, '--dry-run')).toMatchObject({
    code: 0,
    stdout: `Would resume 4 failed runs at ${server.url}.\n`,
  });
  expect(await runs('resume', ...many)).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('--yes is required'),
  });
  expect(await runs('delete', 'wfr_m1', '--yes')).toMatchObject({ code: 0, stdout: 'Deleted 1 failed run.\n' });
  expect(await runs('resume', 'wfr_m1')).toMatchObject({ code: 3 });
  expect(await runs('restart', 'wfr_m2', 'wfr_m3', '--yes', '--json')).toMatchObject({
    code: 0,
    stdout: '{"count":2,"isDryRun":false}\n',
  });
  expect(await runs('resume', ...many, '--count', '1', '--yes')).toMatchObject({ stdout: 'Resumed 1 failed run.\n' });
});

it('says what is wrong: no such run, no server there, a token that nobody has, a command line that means nothing', async () => {
  const problems = [
    await runs('show', 'wfr_unknown'),
    await runs('list', '--server', 'http://127.0.0.1:9'),
    await runs('list', '--token', 'nobody'),
    await runs('list', '--state', 'odd'),
    await runs('list', '--count', '0'),
    await runs('list', 'more'),
    await runs('resume'),
    await runs('dance'),
    await runs('list', '--server', 'nowhere'),
  ];
  expect(problems.map(({ code, stderr }) => `${code} ${stderr}`)).toEqual([
    '3 waypost: there is no run "wfr_unknown", or its data has expired\n',
    expect.stringMatching(/^4 waypost: no server responds at http:\/\/127\.0\.0\.1:9: /),
    `5 waypost: unable to authenticate: invalid token at ${server.url}: --token belongs to another server, is revoked, or has quotes around it\n`,
    '2 waypost: --state: must be active, success, failed, canceled, parked, not "odd"\n',
    '2 waypost: --count: must be a whole number of at least 1\n',
    '2 waypost: runs list: unexpected argument "more"; see waypost runs list --help\n',
    '2 waypost: which failed runs? Give ids, filters, or --all\n',
    '2 waypost: runs: there is no "dance"; see waypost runs --help\n',
    '2 waypost: --server: must be an http or https address, not "nowhere"\n',
  ]);
});
