/** Checks that the alerts, the dashboard and the example for KEDA query existing metrics, with existing labels and values. */
import { expect, it } from 'vitest';
import { listMetrics } from '../../../src/telemetry/metrics/table.ts';
import { panels, QUERIES, rules } from './files.ts';

/** Every sample that a server can tell, by its name, with the label that it has. */
const SAMPLES = new Map(
  listMetrics().flatMap(({ name, metric }) => {
    const names = metric.kind === 'histogram' ? ['bucket', 'sum', 'count'].map((part) => `${name}_${part}`) : [name];
    return names.map((sample) => [sample, metric.label] as const);
  }),
);

it.each(Object.entries(QUERIES))('%s asks for what there is', (_file, expressions) => {
  const asked = expressions.flatMap((text) => [...text.matchAll(/\b(waypost_\w+)(?:\{(\w+)="([^"]*)"\})?/g)]);
  expect(asked.length).toBeGreaterThan(2);
  const wrong = asked.filter(([, name = '', label, value = '']) => {
    if (!SAMPLES.has(name)) return true;
    const known = SAMPLES.get(name);
    return label !== undefined && !(known?.name === label && known.values.includes(value));
  });
  expect(wrong.map(([text]) => text)).toEqual([]);
});

it.each(Object.entries(QUERIES))(
  '%s takes the numbers of a cell by cell: several processes tell the same',
  (_file, expressions) => {
    const ofCell = listMetrics().filter(({ metric }) => metric.kind === 'gauge' && metric.of === 'cell');
    const names = ofCell.map(({ name }) => name).join('|');
    const used = expressions.flatMap((text) => [...text.matchAll(new RegExp(`(.*?)\\b(?:${names})\\b`, 'g'))]);
    expect(used.length).toBeGreaterThan(1);
    const wrong = used.filter(([, before = '']) => before !== '' && !/max by \(cell(, \w+)?\) \($/.test(before));
    expect(wrong.map(([text]) => text)).toEqual([]);
  },
);

it('the dashboard shows every metric', () => {
  const shown = QUERIES['dashboard.json'].join('\n');
  expect(listMetrics().filter(({ name }) => !shown.includes(name))).toEqual([]);
  expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
});

it('every alert has a name of its own and says what is the matter', () => {
  expect(new Set(rules.map(({ alert }) => alert)).size).toBe(rules.length);
  for (const { annotations } of rules) expect(annotations.summary).toMatch(/\.$/);
});
