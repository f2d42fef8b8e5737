/**
 * `npm run bench`: how fast Waypost is, always beside a null relay on the same machine in the same minutes.
 * `npm run bench -- backlog`: what a million stored messages cost. `npm run bench -- lanes`: queues, flow control, schedules.
 * What the figures mean: docs/performance.md.
 */
import { parseArgs } from 'node:util';
import { DEFAULT_BACKLOG, measureBacklog } from './backlog.ts';
import { compare } from './comparison.ts';
import { DEFAULT_LANES, measureLanes } from './lanes.ts';
import type { Peers } from './load.ts';
import { DEFAULT_WORKLOAD } from './measure.ts';
import { backlogTable, comparisonTable, figureLine, levelLine, roundLine } from './report.ts';

const HELP = `npm run bench -- [options]            Waypost beside the null relay
  --rounds <n>           rounds of each, medians are reported (3)
  --messages <n>         messages of a burst (${DEFAULT_WORKLOAD.messages})
  --seconds <n>          seconds at 500 messages a second (${DEFAULT_WORKLOAD.steadySeconds})
  --peers <kind>         ordinary HTTP client and endpoint (ordinary), or bare sockets (bare)
  --fsync-delay <n>ms    added to each fsync of Waypost (0ms); needs a C compiler
npm run bench -- backlog [options]    delayed messages stored
  --messages <n>         how many (1000000); also measured at 0 and at a tenth
npm run bench -- lanes [options]      queues, flow-control keys, schedules, a bulk cancel
  --messages <n>         messages to cancel at once (1000000)
all
  --json                 the report as JSON on standard output, progress on standard error
`;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    rounds: { type: 'string' },
    messages: { type: 'string' },
    seconds: { type: 'string' },
    peers: { type: 'string', default: 'ordinary' },
    'fsync-delay': { type: 'string' },
    json: { type: 'boolean' },
    help: { type: 'boolean' },
  },
});

const progress = (line: string) => process.stderr.write(`${line}\n`);

function count(name: 'rounds' | 'messages' | 'seconds', fallback: number): number {
  const text = values[name];
  if (text === undefined) return fallback;
  if (!/^[1-9]\d*$/.test(text)) throw new Error(`--${name} must be a positive whole number, got "${text}"`);
  return Number(text);
}

function fsyncDelayMs(): number {
  const text = values['fsync-delay'] ?? '0ms';
  const match = /^(\d+(?:\.\d+)?)(ms|us)$/.exec(text);
  if (match === null) throw new Error(`--fsync-delay must be a span such as 1ms or 500us, got "${text}"`);
  return Number(match[1]) / (match[2] === 'us' ? 1_000 : 1);
}

function peers(): Peers {
  const text = values.peers;
  if (text !== 'ordinary' && text !== 'bare') throw new Error(`--peers must be ordinary or bare, got "${text}"`);
  return text;
}

async function runComparison(): Promise<void> {
  const messages = count('messages', DEFAULT_WORKLOAD.messages);
  const comparison = await compare({
    peers: peers(),
    rounds: count('rounds', 3),
    fsyncDelayMs: fsyncDelayMs(),
    workload: {
      ...DEFAULT_WORKLOAD,
      messages,
      warmUpMessages: Math.min(messages, DEFAULT_WORKLOAD.warmUpMessages),
      steadySeconds: count('seconds', DEFAULT_WORKLOAD.steadySeconds),
    },
    onRound: (name, round, measured) => progress(roundLine(name, round, measured)),
  });
  process.stdout.write(`${values.json ? JSON.stringify(comparison) : comparisonTable(comparison)}\n`);
  if (comparison.waypost.missing > 0) process.exitCode = 1;
}

async function runBacklog(): Promise<void> {
  const messages = count('messages', 1_000_000);
  const report = await measureBacklog({
    ...DEFAULT_BACKLOG,
    levels: [Math.ceil(messages / 10), messages],
    onLevel: (level) => progress(levelLine(level)),
  });
  process.stdout.write(`${values.json ? JSON.stringify(report) : backlogTable(report)}\n`);
  if (report.levels.some((level) => level.missing > 0)) process.exitCode = 1;
}

async function runLanes(): Promise<void> {
  const figures = await measureLanes({
    ...DEFAULT_LANES,
    cancelledMessages: count('messages', DEFAULT_LANES.cancelledMessages),
    onFigure: (figure) => progress(figureLine(figure)),
  });
  process.stdout.write(`${values.json ? JSON.stringify(figures) : figures.map(figureLine).join('\n')}\n`);
  if (figures.some(({ unit, value }) => unit === 'messages' && value !== 0)) process.exitCode = 1;
}

if (values.help) process.stdout.write(HELP);
else if (positionals.length === 0) await runComparison();
else if (positionals.length === 1 && positionals[0] === 'backlog') await runBacklog();
else if (positionals.length === 1 && positionals[0] === 'lanes') await runLanes();
else {
  process.stderr.write(HELP);
  process.exitCode = 2;
}
