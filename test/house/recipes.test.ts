/** Checks that list filters and metrics are named only in the places that the recipes in docs/architecture.md list. */
import { globSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { messageFilters } from '../../src/api/messages/filters.ts';
import { COUNTS_OF_MINUTES } from '../../src/engine/minutes/counts.ts';
import { listMetrics } from '../../src/telemetry/metrics/table.ts';
import { stepsOf } from './recipe-steps.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const read = (file: string) => readFileSync(`${root}${file}`, 'utf8');
const SOURCES = globSync('src/**/*.ts', { cwd: root }).map((file) => file.replaceAll('\\', '/'));

it.each(['A new list filter', 'A new metric'])('%s takes at most five steps, in files that exist', (recipe) => {
  const steps = stepsOf(recipe);
  expect(steps.length).toBeGreaterThan(2);
  expect(steps.length).toBeLessThanOrEqual(5);
  for (const file of steps) expect(globSync(file ?? '', { cwd: root }), file).toHaveLength(1);
});

it('a filter of every list of messages is a row, a member and a condition, each in the file of its step', () => {
  const [row = '', member = '', condition = ''] = stepsOf('A new list filter');
  const logs = new Set(messageFilters('logs').rows.map((filter) => filter.member));
  const attributes = messageFilters('dlqList').rows.flatMap((filter) => {
    const isOfTexts = filter.schema['type'] === 'array' && !filter.emptyIds;
    return isOfTexts && logs.has(filter.member) ? filter.member : [];
  });
  expect(attributes).toContain('scheduleId');
  for (const name of attributes) {
    expect(read(row), name).toContain(`texts('${name}'`);
    expect(read(member), name).toContain(`  ${name}?: string[];`);
    expect(read(condition), name).toContain(`filter.${name}`);
  }
  const naming = /texts\('scheduleId'|\bscheduleId\?: string\[\]|\bfilter\.scheduleId\b/;
  expect(SOURCES.filter((file) => naming.test(read(file))).toSorted()).toEqual([row, member, condition].toSorted());
});

it('a counter of events is named in the table alone, and its count where events add to it', () => {
  const [table = '', counts = ''] = stepsOf('A new metric');
  expect(SOURCES.filter((file) => read(file).includes('waypost_runs_started_total'))).toEqual([table]);
  const naming = SOURCES.filter((file) => read(file).includes("'runsStarted'"));
  expect(naming.toSorted()).toEqual([counts, table].toSorted());
});

it('each count is read by a metric', () => {
  const known = [...read('src/engine/minutes/counts.ts').matchAll(/^ {2}\| '(\w+)'/gm)].map(([, count]) => count);
  const shown = listMetrics().flatMap(({ metric }) =>
    metric.kind !== 'counter' || !metric.counts
      ? []
      : typeof metric.counts === 'string'
        ? metric.counts
        : Object.values(metric.counts),
  );
  const unread = known.filter((count) => !shown.some((name) => name === count));
  // Attempts that failed are shown by their results; the minutes have their sum.
  expect(unread).toEqual(['failedAttempts']);
  expect(COUNTS_OF_MINUTES).toContain('failedAttempts');
});
