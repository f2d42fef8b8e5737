/** Runs found by the state of their steps, and the reads that explain a run. */

import { expect, test } from 'vitest';
import { type BoundFunctions, bindContext, type EngineContext } from '../../src/engine/context.ts';
import type { PageRequest } from '../../src/engine/lists/page.ts';
import type { RunFilter } from '../../src/engine/runs/logs/log-store.ts';
import { explainRun, listRuns } from '../../src/engine/runs/logs/logs.ts';
import type { Store } from '../../src/store/store.ts';
import type { RunHistory } from '../../src/workflow/history.ts';
import type { StepState } from '../../src/workflow/step-summaries.ts';
import { IN_FLIGHT, Journal, NOW, RETRYING } from '../workflow/histories.ts';
import { message } from './fixtures.ts';

interface RecordedRead {
  filter: RunFilter;
  page: PageRequest;
}

/** A store of `histories`, with at most `pageMax` on a page, which records its reads. */
function logsOver(
  histories: readonly RunHistory[],
  pageMax = Infinity,
): {
  logs: BoundFunctions<{ listRuns: typeof listRuns; explainRun: typeof explainRun }>;
  asked: RecordedRead[];
  lookedUp: string[];
} {
  const asked: RecordedRead[] = [];
  const lookedUp: string[] = [];
  const runLogs: Store['runLogs'] = {
    listRunEvents: () => Promise.resolve({ items: [] }),
    listRunHistories({ filter, page }) {
      asked.push({ filter, page });
      const from = Number(page.cursor ?? 0);
      const items = histories.slice(from, from + Math.min(page.count, pageMax));
      const next = from + items.length;
      return Promise.resolve(next < histories.length ? { items, cursor: String(next) } : { items });
    },
  };
  const messages: Pick<Store['messages'], 'findLive'> = {
    findLive({ id }) {
      lookedUp.push(id);
      const state = { kind: 'due', dueAtMs: NOW + 5 } as const;
      return Promise.resolve({ message: { ...message(), id }, retried: 1, cancelRequested: false, state });
    },
  };
  const context = { store: { runLogs, messages }, clock: { nowMs: () => NOW } } as unknown as EngineContext;
  return { logs: bindContext({ listRuns, explainRun }, context), asked, lookedUp };
}

const retried = (): RunHistory => new Journal().initial(RETRYING).history();
const going = (): RunHistory => new Journal().initial(IN_FLIGHT).history();

test('without a filter on steps the page is that of the store', async () => {
  const { logs, asked } = logsOver([retried(), going()]);
  const page = await logs.listRuns(1, { runId: ['wfr_a'] }, { count: 1, order: 'latestFirst' });
  expect(page).toMatchObject({ items: [{ run: { id: 'wfr_a' } }], cursor: '1' });
  expect(asked).toEqual([{ filter: { runId: ['wfr_a'] }, page: { count: 1, order: 'latestFirst' } }]);
});

test('runs with a step in a state are searched until the page is full', async () => {
  const { logs } = logsOver([going(), going(), retried(), going(), retried(), retried()]);
  const filter: { stepState: StepState[] } = { stepState: ['STEP_RETRY'] };
  const first = await logs.listRuns(1, filter, { count: 2, order: 'latestFirst' });
  expect(first.items).toHaveLength(2);
  expect(first.cursor).toBe('5');
  const last = await logs.listRuns(1, filter, { count: 2, order: 'latestFirst', cursor: '5' });
  expect(last.items).toHaveLength(1);
  expect(last).not.toHaveProperty('cursor');
});

test('a page of runs whose bodies are cut is filled, though the store ends its pages early', async () => {
  const long = 'x'.repeat(100);
  const { logs } = logsOver(
    Array.from({ length: 4 }, () => new Journal().initial().step(1, { out: long }).history()),
    1,
  );
  const page: PageRequest = { count: 3, order: 'latestFirst' };
  expect((await logs.listRuns(1, {}, page)).items).toHaveLength(1);
  const cut = await logs.listRuns(1, {}, page, 10);
  expect([cut.items.length, cut.cursor]).toEqual([3, '3']);
  const outs = cut.items.flatMap(({ groups }) => groups.at(-1)?.steps.map(({ info }) => info.out?.length));
  expect(outs).toEqual([11, 11, 11]);
});

test('redacted bodies are not cut, since they are shown as a hash of the whole', async () => {
  const journal = new Journal().initial().step(1, { out: 'x'.repeat(100) });
  const history = journal.history();
  const redact = { body: true, headers: [] };
  const hidden = { ...history, run: { ...history.run, config: { ...history.run.config, redact } } };
  const { items } = await logsOver([hidden]).logs.listRuns(1, {}, { count: 1, order: 'latestFirst' }, 10);
  expect(items[0]?.groups.at(-1)?.steps[0]?.info.out).toHaveLength(100);
});

test('a search that finds nothing ends with a cursor before it has read very many runs', async () => {
  const { logs } = logsOver(Array.from({ length: 1_000 }, going));
  const page = await logs.listRuns(1, { stepState: ['STEP_RETRY'] }, { count: 10, order: 'latestFirst' });
  expect(page).toEqual({ items: [], cursor: '200' });
});

test.for<[stepState: StepState[], asked: RunFilter]>([
  [['STEP_RETRY'], { state: ['RUN_STARTED'] }],
  [['STEP_FAILED', 'STEP_RETRY'], { state: ['RUN_FAILED', 'RUN_STARTED'] }],
  [['STEP_SUCCESS', 'STEP_RETRY'], {}],
])('for steps in %j only runs that can have one are read', async ([stepState, expected]) => {
  const { logs, asked } = logsOver([going()]);
  await logs.listRuns(1, { stepState }, { count: 10, order: 'latestFirst' });
  expect(asked.map(({ filter }) => filter)).toEqual([expected]);
});

test('a run is explained by its active incarnation, with the states of its messages', async () => {
  const { logs, asked, lookedUp } = logsOver([new Journal().initial().step(1, {}, RETRYING).history()]);
  expect(await logs.explainRun(1, 'wfr_a')).toMatchObject({ reason: 'retrying', messageId: 'msg_2', dueAtMs: NOW + 5 });
  expect(asked[0]?.filter).toEqual({ runId: ['wfr_a'] });
  expect(lookedUp).toEqual(['msg_2']);
  expect(await logsOver([]).logs.explainRun(1, 'wfr_a')).toBeUndefined();
});
