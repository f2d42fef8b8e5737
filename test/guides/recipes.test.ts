/** Follows each recipe, and compares the output of `waypost explain` with the page. */
import { readdirSync } from 'node:fs';
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { Client } from '@upstash/workflow';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it, type MockInstance, onTestFinished, vi } from 'vitest';
import type { Waypost, WaypostProject } from '../../src/testing/types.ts';
import { startWaypost } from '../../src/testing/waypost.ts';
import { listen, originOf } from '../support/listen.ts';
import { type Block, blocksOf } from '../support/pages.ts';
import { giveCommand } from '../support/waypost-command.ts';
import { Reader } from './reader.ts';

const RECIPES = [
  'cron-with-time-zones',
  'exactly-once-effects',
  'fan-out',
  'human-approval',
  'long-jobs',
  'rate-limited-calls',
];

interface Call {
  at: string;
  path: string;
  headers: IncomingHttpHeaders;
  body: string;
}

let waypost: Waypost;
let project: WaypostProject;
let blocks: Block[];
let reader: Reader;
let printed: MockInstance<typeof console.log>;
let client: Client;

/** Whoever else is called: the API of the page, or receivers that are not shown. */
let others: Server;
let calls: Call[];
let answer: (call: Call) => number;

beforeAll(async () => {
  waypost = await startWaypost({ startAt: new Date('2026-03-26T12:00:00Z') });
});
afterAll(() => waypost.stop());

beforeEach(async () => {
  calls = [];
  answer = () => 200;
  others = createServer(async (request, response) => {
    const { url = '', headers } = request;
    const call = { at: waypost.now().toISOString().slice(0, 16), path: url, headers, body: await text(request) };
    calls.push(call);
    response.writeHead(answer(call), { 'content-type': 'application/json' }).end(JSON.stringify({ score: 7 }));
  });
  await listen(others);
  printed = vi.spyOn(console, 'log').mockReturnValue();
  vi.spyOn(console, 'error').mockReturnValue(); // the clients' own words on what is refused
});
afterEach(() => {
  vi.restoreAllMocks();
  others.closeAllConnections();
  others.close();
});

async function open(recipe: string): Promise<void> {
  project = await waypost.project();
  client = new Client({ baseUrl: project.url, token: project.token });
  blocks = blocksOf(`docs/recipes/${recipe}.md`);
  const url = originOf(others);
  // An app listens on port 3000; on a page without one, what is there is somebody else's.
  const isThere = blocks.some(({ file, code }) => file === 'app.mts' && code.includes('listen(3000'));
  reader = await Reader.open(project.env(), {
    'https://api.example.com': url,
    ...(!isThere && { 'http://127.0.0.1:3000': url }),
  });
  onTestFinished(() => reader.close());
  reader.save(blocks);
}

/** What the command says, and what the page does: with the same words for what no page can know. */
async function expectWords(id: string): Promise<void> {
  const { stdout } = await giveCommand(['explain', id], { ...project.env() });
  const page = blocks.find(({ language }) => language === 'text')?.code ?? '';
  expect(general(stdout)).toBe(general(page));
}

function general(words: string): string {
  return words
    .replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, '<time>')
    .replace(/\b\d{13}-\d+/g, '<id>')
    .replace(/\bevt_[^,]+/g, '<webhook>');
}

async function running<T>(file: string): Promise<T> {
  return (await reader.run(file)) as T;
}

const lines = () => printed.mock.calls.map(([line]) => String(line));

it('has a test for each recipe', () => {
  const pages = readdirSync(join(import.meta.dirname, '../../docs/recipes'));
  expect(pages.map((file) => file.replace('.md', '')).toSorted()).toEqual(RECIPES);
});

it('makes reports by the clock of each customer, through the change to summer time', async () => {
  await open('cron-with-time-zones');
  const { reportEachMorning, noMoreReports } = await running<{
    reportEachMorning(customer: { id: string; zone: string }): Promise<void>;
    noMoreReports(customer: { id: string }): Promise<void>;
  }>('reports.mts');
  await reportEachMorning({ id: 'ann', zone: 'America/Chicago' });
  await reportEachMorning({ id: 'ann', zone: 'Europe/Berlin' });
  await reportEachMorning({ id: 'ben', zone: 'America/New_York' });
  await expect(reportEachMorning({ id: 'eve', zone: 'Europe/Atlantis' })).rejects.toThrow('Invalid cron expression');
  await waypost.advance('5d');
  const at = (id: string) => calls.filter(({ body }) => body === `{"customer":"${id}"}`).map((call) => call.at);
  expect(at('ann').slice(0, 2)).toEqual(['2026-03-27T06:30', '2026-03-30T05:30']);
  expect(at('ben').slice(0, 2)).toEqual(['2026-03-27T11:30', '2026-03-30T11:30']);
  expect(calls[0]?.headers['upstash-schedule-id']).toBe('report-ann');
  await noMoreReports({ id: 'ann' });
  calls.length = 0;
  await waypost.advance('1d');
  expect(at('ann')).toEqual([]);
  const { stdout } = await giveCommand(['schedules'], { ...project.env() });
  expect(stdout).toContain('report-ben');
});

it('sends sixty calls a minute to an API, five at a time, and hides its token', async () => {
  await open('rate-limited-calls');
  const { sync } = await running<{ sync(contacts: object[]): Promise<{ messageId: string }[]> }>('sync.mts');
  const sent = await sync(Array.from({ length: 150 }, (_, index) => ({ email: `${index}@example.com` })));
  await waypost.advance('30s');
  expect(calls).toHaveLength(60);
  expect(calls[0]?.headers.authorization).toMatch(/^Bearer /);
  const waiting = (await project.messages()).filter(({ state }) => state === 'CREATED');
  expect(waiting).toHaveLength(90);
  expect(JSON.stringify(waiting[0])).toContain('REDACTED:');
  await expectWords(waiting[0]?.messageId ?? '');
  await waypost.advance('1m');
  expect(calls).toHaveLength(120);
  await waypost.runUntilIdle();
  expect(new Set(calls.map(({ body }) => body)).size).toBe(sent.length);

  await reader.run('app.mts');
  await client.trigger({ url: `${reader.appUrl}/score`, body: { email: 'ann@example.com' } });
  await waypost.runUntilIdle();
  expect((await project.runs())[0]?.workflowRunResponse).toBe('7');
});

it('brings one event to all receivers, whichever of them is down', async () => {
  await open('fan-out');
  await reader.run('receivers.mts');
  const { orderPlaced } = await running<{ orderPlaced(order: number): Promise<{ messageId: string }[]> }>('shop.mts');
  answer = ({ path }) => (path === '/stock' ? 503 : 200);
  const [, stock] = await orderPlaced(42);
  await orderPlaced(42);
  await waypost.runUntilIdle();
  const paths = () => calls.map(({ path }) => path).toSorted();
  expect(paths()).toEqual(['/invoice', '/mail', '/stock', '/stock', '/stock', '/stock']);
  await expectWords(stock?.messageId ?? '');

  answer = () => 200;
  calls.length = 0;
  const retry = blocks.find(({ code }) => code.includes('dlq retry'))?.code ?? '';
  const words = reader.here(retry).trim().split(' ').slice(1);
  expect(await giveCommand(words, { ...project.env() })).toMatchObject({ code: 0 });
  await waypost.runUntilIdle();
  expect(paths()).toEqual(['/stock']);
});

it('pays what somebody approves, and nothing that nobody decides on', async () => {
  await open('human-approval');
  await reader.run('app.mts');
  const refund = async (euros: number) => {
    const { workflowRunId } = await client.trigger({ url: `${reader.appUrl}/refund`, body: { order: 42, euros } });
    return workflowRunId;
  };
  const decide = async (run: string, isApproved: boolean) => {
    const body = JSON.stringify({ by: 'Ann', isApproved });
    const headers = { 'content-type': 'application/json' };
    return (await fetch(`${reader.appUrl}/decide/${run}`, { method: 'POST', headers, body })).status;
  };
  const response = async (run: string) =>
    (await project.runs()).find(({ workflowRunId }) => workflowRunId === run)?.workflowRunResponse;
  const [approved, refused, ignored, small] = [
    await refund(150),
    await refund(160),
    await refund(170),
    await refund(9),
  ];
  await waypost.advance('1d');
  expect(lines()[0]).toBe(`mail: may order 42 be refunded? /decide/${approved}`);
  await expectWords(approved);
  expect(await decide(approved, true)).toBe(200);
  expect(await decide(refused, false)).toBe(200);
  await waypost.runUntilIdle();
  expect(await Promise.all([approved, refused, ignored, small].map(response))).toEqual(
    ['paid out', 'refused by Ann', 'nobody decided', 'paid out'].map((text) => JSON.stringify(text)),
  );
  expect(await decide(approved, false)).toBe(410);
  expect(await decide('..%2Fkeys%2Frotate%3F', true)).toBe(404);
  expect(lines().filter((line) => line.startsWith('paid'))).toEqual(['paid 9 euros', 'paid 150 euros']);
});

it('goes on with the page that failed, and waits for hours for who calls back', async () => {
  await open('long-jobs');
  await reader.run('app.mts');
  await client.trigger({ url: `${reader.appUrl}/jobs/rows`, body: { pages: 6 } });
  project.disturb({ answer: 'lost', to: `${reader.appUrl}/jobs/rows` });
  await waypost.runUntilIdle();
  expect((await project.runs())[0]?.workflowRunResponse).toBe('6000');
  expect(new Set(lines())).toEqual(new Set([1, 2, 3, 4, 5, 6].map((page) => `page ${page}`)));

  const { workflowRunId } = await client.trigger({ url: `${reader.appUrl}/jobs/film`, body: { film: 'Metropolis' } });
  await waypost.advance('5h');
  await expectWords(workflowRunId);
  const { film, callWhenDone } = JSON.parse(calls[0]?.body ?? '');
  expect(film).toBe('Metropolis');
  await fetch(callWhenDone, { method: 'POST', body: 'https://films.example/7' });
  await waypost.advance('1m');
  const run = (await project.runs()).find((one) => one.workflowRunId === workflowRunId);
  expect(run?.workflowRunResponse).toBe('"rendered to https://films.example/7"');
});

it('has each effect once, though the request for it comes again', async () => {
  await open('exactly-once-effects');
  const app = await running<{ pay(order: number, cents: number): Promise<{ messageId: string; deduplicated?: true }> }>(
    'app.mts',
  );
  project.disturb({ answer: 'lost' });
  const first = await app.pay(42, 1_000);
  expect(await app.pay(42, 1_000)).toMatchObject({ messageId: first.messageId, deduplicated: true });
  await waypost.runUntilIdle();
  await waypost.advance('1h');
  expect((await app.pay(42, 1_000)).messageId).not.toBe(first.messageId);
  await waypost.runUntilIdle();
  expect((await project.messages()).map(({ attempts }) => attempts)).toEqual([2, 1]);
  const { DatabaseSync } = await import('node:sqlite');
  const rows = new DatabaseSync(join(reader.folder, 'shop.db')).prepare('select * from payments').all();
  expect(rows).toEqual([{ id: 'payment-42', cents: 1_000 }]);

  await reader.run('charge.mts');
  answer = () => (calls.length === 1 ? 502 : 200);
  const trigger = { url: `${reader.appUrl}/charge`, body: { cents: 1_000 }, workflowRunId: 'order-42' };
  await client.trigger(trigger);
  await client.trigger(trigger);
  await waypost.runUntilIdle();
  const key = 'wfr_order-42-charge';
  expect(calls.map(({ headers }) => headers['idempotency-key'])).toEqual([key, key]);
});
