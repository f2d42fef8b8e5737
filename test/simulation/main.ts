/**
 * Simulates the service with faults, for one or more seeds, and checks its promises. A failing seed is reproducible.
 * `npm run simulate -- --seed 42 [--seeds 1000] [--steps 150] [--workers 3] [--cells 3] [--workflows] [--trace]`
 */
import { parseArgs } from 'node:util';
import { type SimulationReport, simulate } from './simulate.ts';
import { simulateWorkflows } from './workflow-simulate.ts';

const { values } = parseArgs({
  options: {
    seed: { type: 'string' },
    seeds: { type: 'string' },
    steps: { type: 'string' },
    workers: { type: 'string' },
    cells: { type: 'string' },
    workflows: { type: 'boolean' },
    trace: { type: 'boolean' },
  },
});
const first = wholeNumber('seed', values.seed) ?? Math.floor(Math.random() * 1e9);
const count = wholeNumber('seeds', values.seeds) ?? 1;
const play = values.workflows ? simulateWorkflows : simulate;
const steps = wholeNumber('steps', values.steps) ?? (values.workflows ? 40 : 150);

const cells = wholeNumber('cells', values.cells);
const workers = wholeNumber('workers', values.workers) ?? (cells === undefined ? undefined : 3);

const shared = { ...(workers !== undefined && { workers }), ...(cells !== undefined && { cells }) };
const flags = [
  ...(values.workflows ? ['--workflows'] : []),
  ...Object.entries(shared).map(([name, figure]) => `--${name} ${figure}`),
];

let failures = 0;
for (let seed = first; seed < first + count; seed += 1) {
  process.stdout.write(`seed ${seed} `);
  const report = await play({ seed, steps, ...shared });
  if (values.trace) process.stdout.write(`\n${report.trace.join('\n')}\n`);
  process.stdout.write(`${lineOf(report)}\n`);
  if (report.violations.length === 0) continue;
  failures += 1;
  for (const { promise, text, messageId } of report.violations.slice(0, 5)) {
    process.stdout.write(`  ${promise} is broken: ${text} ${messageId ?? ''}\n`);
  }
  for (const line of report.evidence) process.stdout.write(`    ${line}\n`);
  process.stdout.write(
    `  again with: npm run simulate -- ${[...flags, ''].join(' ')}--seed ${seed} --steps ${steps}\n`,
  );
}
process.stdout.write(`${count} seeds, ${failures} failed\n`);
process.exitCode = failures > 0 ? 1 : 0;

function lineOf({ counts, digest, violations }: SimulationReport): string {
  const figures = Object.entries(counts).map(([name, figure]) => `${figure} ${name}`);
  const verdict = violations.length === 0 ? 'ok' : 'FAILED';
  return `${verdict}: ${figures.join(', ')} (${digest.slice(0, 12)})`;
}

function wholeNumber(name: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  if (/^\d{1,15}$/.test(text)) return Number(text);
  process.stderr.write(`--${name} must be a whole number, got ${JSON.stringify(text)}\n`);
  process.exit(2);
}
