/**
 * The benchmarks; docs/performance.md explains the figures. `npm run bench` compares Waypost with a null relay on the same machine
 * at the same time. `npm run bench -- <name>` runs one of these:
 * - `backlog`: the cost of a million stored messages
 * - `lanes`: queues, flow control, schedules
 * - `memory`: memory after an attack by hostile endpoints
 * - `loop`: the effect of a single heavy request, and of floods, on other clients
 * - `hostile`: hanging endpoints together with responsive ones
 * - `workflow`: workflow runs, compared with a reference
 * - `postgres`: workers on PostgreSQL
 * - `workers`: the cost of a message with one, two and four workers
 * - `capacity`: a model of machines that are not available, validated on this one
 * - `overload`: more publishes than can be delivered
 * - `outage`: messages that became due while the server was down
 * - `cli`: the help of each command, and `waypost logs -f` on a busy log
 * - `console`: the console in a browser, and its cost for the server
 * - `test-kit`: the start of the test kit, and virtual years
 * - `metrics`: the response time of metrics
 * - `traces`: the cost of spans that are sent to a collector
 * - `before`: another checkout compared with this one
 */
import { parseArgs } from 'node:util';
import { DEFAULT_BACKLOG, measureBacklog } from './backlog.ts';
import { DEFAULT_BEFORE, measureBefore } from './before.ts';
import { capacityTable, DEFAULT_CAPACITY, measureCapacity } from './capacity/measure.ts';
import { cellsLine, cellsTable, DEFAULT_CELLS, measureCells } from './cells.ts';
import { awayLine, awayTable, DEFAULT_CELLS_AWAY, measureCellsAway } from './cells-away.ts';
import { DEFAULT_MANY_CELLS, measureManyCells } from './cells-many.ts';
import { DEFAULT_COMMAND_LINE, measureCommandLine } from './command-line.ts';
import { compare } from './comparison.ts';
import { CONSOLE_PARTS, type ConsolePart, DEFAULT_CONSOLE, measureConsole } from './console/measure.ts';
import type { Figure } from './figure.ts';
import { DEFAULT_HOSTILE, measureHostile } from './hostile.ts';
import { DEFAULT_LANES, measureLanes } from './lanes.ts';
import type { Peers } from './load.ts';
import { DEFAULT_FLOOD, measureFloods } from './loop/floods.ts';
import { BLOCKED_MS_MAX, measureLoopBlocks } from './loop/loop-blocks.ts';
import { DEFAULT_RESPONSES, measureResponses } from './loop/responses.ts';
import { DEFAULT_WORKLOAD } from './measure.ts';
import { DEFAULT_MEMORY, measureMemory } from './memory.ts';
import { costLine, costTable, type Database, DEFAULT_COST, measureMessageCost } from './message-cost.ts';
import { DEFAULT_METRICS, measureMetrics } from './metrics.ts';
import { DEFAULT_OUTAGE, measureOutage } from './outage/measure.ts';
import { DEFAULT_OVERLOAD, measureOverload } from './overload/measure.ts';
import { overloadLine, overloadTable } from './overload/report.ts';
import { measureCitus } from './postgres/citus.ts';
import { citusCellsTable, DEFAULT_CITUS_CELLS, measureCitusCells } from './postgres/citus-cells.ts';
import { DEFAULT_CLAIMS, measureClaims } from './postgres/claims.ts';
import { installLibraries, LIBRARIES, type StartContestant, startLibraryAlone } from './postgres/job-contestant.ts';
import { DEFAULT_JOBS, measureJobs } from './postgres/jobs.ts';
import {
  citusTable,
  intervalLine,
  jobsLine,
  jobsTable,
  sustainedSummary,
  workersLine,
  workersTable,
} from './postgres/report.ts';
import { DEFAULT_SUSTAINED, measureSustained } from './postgres/sustained.ts';
import { startWaypostOnPostgres, startWaypostOnSqlite, startWebhooksOn } from './postgres/webhooks/contestants.ts';
import { DEFAULT_WORKERS, measureWorkers } from './postgres/workers.ts';
import { DEFAULT_PROJECT_MOVE, measureProjectMove, projectMoveLine } from './project-move.ts';
import {
  backlogTable,
  comparisonTable,
  figureLine,
  gainLines,
  levelLine,
  loadLine,
  roundLine,
  stepsTable,
} from './report.ts';
import { DEFAULT_TEST_KIT, measureTestKit } from './test-kit.ts';
import { DEFAULT_TRACES, measureTraces } from './traces.ts';
import { DEFAULT_LONG_RUN, measureGaps, measureLongRuns } from './workflows/long-run.ts';
import { restateContestant } from './workflows/restate.ts';
import { DEFAULT_RESUMING, measureResuming } from './workflows/resuming.ts';
import { DEFAULT_SLEEPING, measureSleeping } from './workflows/sleeping.ts';
import { DEFAULT_STEPS, measureSteps, type StepFigures } from './workflows/steps.ts';
import { DEFAULT_WAKING, measureWaking } from './workflows/waking.ts';
import { startWaypostContestant } from './workflows/waypost-runs.ts';

const HELP = `npm run bench -- [options]            Waypost compared with the null relay
  --rounds <n>           rounds of each; medians are reported (3)
  --messages <n>         messages per burst (${DEFAULT_WORKLOAD.messages})
  --seconds <n>          seconds at 500 messages per second (${DEFAULT_WORKLOAD.steadySeconds})
  --peers <kind>         an ordinary HTTP client and endpoint (ordinary), or bare sockets (bare)
  --fsync-delay <n>ms    added to each fsync of Waypost (0ms); needs a C compiler
npm run bench -- backlog [options]    stored delayed messages
  --messages <n>         number of messages (1000000); also measured with none and with a tenth
npm run bench -- lanes [options]      queues, flow-control keys, schedules, a bulk cancel
  --messages <n>         messages that one request cancels (1000000)
npm run bench -- memory [options]     resident memory after an attack by hostile endpoints
  --messages <n>         hostile endpoints, with one message each (${DEFAULT_MEMORY.origins})
npm run bench -- loop [requests|floods|responses] [options]    the longest block of the event loop by heavy requests; publishes
                         during floods; GET /healthz while 200 connections request large responses
  --seconds <n>          seconds per flood (${DEFAULT_FLOOD.seconds}; for responses ${DEFAULT_RESPONSES.seconds})
npm run bench -- hostile [options]    thousands of hanging endpoints together with responsive ones
  --messages <n>         hanging endpoints; default: 10000 for 15 minutes, then 3000 for one
  --postgres             on PostgreSQL
npm run bench -- overload [options]   publishers on 64 to 1,500 connections, as fast as they can
  --rounds <n>           rounds per number of connections, alternating (${DEFAULT_OVERLOAD.rounds})
  --seconds <n>          seconds per round (${DEFAULT_OVERLOAD.seconds})
  --connections <n,n>    numbers of connections (${DEFAULT_OVERLOAD.connections})
  --workers <n>          workers of the server (${DEFAULT_OVERLOAD.workers})
npm run bench -- outage [options]     messages that became due while the server was down
  --messages <n>         number of messages (${DEFAULT_OUTAGE.messages})
  --postgres             on PostgreSQL
npm run bench -- workers [SQLite|PostgreSQL] [options]    cost of a message with 1, 2 and 4 workers; default: both databases
  --rounds <n>           rounds of each; medians are reported (${DEFAULT_COST.rounds})
  --seconds <n>          seconds at each rate (${DEFAULT_COST.seconds})
  --rates <n,n>          messages per second (${DEFAULT_COST.rates}); 0 is a burst
npm run bench -- capacity [options]   a model of workers and PostgreSQL, validated on this machine
  --rounds <n>           rounds of each measurement; medians are used (${DEFAULT_CAPACITY.rounds})
npm run bench -- cells [options]      cost of a message with 1, 4 and 16 cells on one PostgreSQL, and of 64 idle cells
  --rounds <n>           rounds of each; medians are reported (${DEFAULT_CELLS.rounds})
  --seconds <n>          seconds per round (${DEFAULT_CELLS.seconds})
npm run bench -- cells many [options]    a thousand idle cells on one PostgreSQL
  --cells <n>            number of cells (${DEFAULT_MANY_CELLS.cells})
npm run bench -- cells away [options]    effect of a killed or hanging cell, or directory, on other cells
  --workers <n>          processes (${DEFAULT_CELLS_AWAY.workers})
  --rounds <n>           rounds of each, alternating; medians are reported (${DEFAULT_CELLS_AWAY.rounds})
  --seconds <n>          seconds per round (${DEFAULT_CELLS_AWAY.seconds})
npm run bench -- move [options]       how long requests of a project are rejected while it moves to another cell
  --messages <n>         delivered messages of the project (${DEFAULT_PROJECT_MOVE.messages})
  --waiting <n>          waiting messages of the project (${DEFAULT_PROJECT_MOVE.waiting})
npm run bench -- cli [options]        the help of each command, and waypost logs -f on a busy log
  --rounds <n>           starts of each command; medians are reported (${DEFAULT_COMMAND_LINE.rounds})
  --seconds <n>          seconds at ${DEFAULT_COMMAND_LINE.perSecond} entries per second (${DEFAULT_COMMAND_LINE.seconds})
npm run bench -- console [lists|page|live|idle] [options]    the console in Chromium; default: all four
  --messages <n>         stored messages (${DEFAULT_CONSOLE.messages})
  --runs <n>             stored runs (${DEFAULT_CONSOLE.runs})
  --rounds <n>           rounds of the live view; medians are reported (${DEFAULT_CONSOLE.rounds})
  --seconds <n>          seconds for which the idle server is measured with each screen (${DEFAULT_CONSOLE.idleSeconds})
npm run bench -- test-kit [options]   the start of the test kit, and a virtual year
  --messages <n>         messages over the year (${DEFAULT_TEST_KIT.messages})
npm run bench -- metrics [options]    response time of metrics, with 10,000 keys
  --messages <n>         stored messages (${DEFAULT_METRICS.messages})
  --rounds <n>           requests of each kind (${DEFAULT_METRICS.rounds})
npm run bench -- traces [options]     a server that sends spans to a collector, compared with one that does not
  --rounds <n>           rounds of each, alternating (${DEFAULT_TRACES.rounds})
  --messages <n>         messages per burst (${DEFAULT_TRACES.messages})
npm run bench -- before <folder> [options]    another checkout, such as the previous commit, compared with this one
  --rounds <n>           rounds of each (${DEFAULT_BEFORE.rounds})
  --messages <n>         messages per burst (${DEFAULT_BEFORE.messages})
  --postgres             on PostgreSQL
npm run bench -- workflow [steps|long|gaps|sleeping|waking|resuming] [options]    workflow runs; default: all six
  --rounds <n>           rounds of steps; medians are reported (${DEFAULT_STEPS.rounds})
  --runs <n>             runs of three steps per load (${DEFAULT_STEPS.runs})
  --workers <n>          workers of the Waypost server for these steps (1)
  --messages <n>         sleeping runs (${DEFAULT_SLEEPING.runs})
  --postgres             waking and resuming on PostgreSQL
  --alone                without the reference, which is installed from npm
npm run bench -- postgres [workers|claims|jobs] [options]    workers on PostgreSQL; default: all three
  --rounds <n>           rounds of workers (${DEFAULT_WORKERS.rounds}) and jobs (${DEFAULT_JOBS.rounds}); medians are reported
  --peers <kind>         as above, for workers
  --messages <n>         due messages to claim (${DEFAULT_CLAIMS.messages})
  --alone                without BullMQ, pg-boss and Graphile Worker, which are installed from npm, and Redis
npm run bench -- citus [options]      one worker on Citus, compared with PostgreSQL of the installation in CITUS_FOLDER
  --rounds <n>           rounds of each, alternating (3)
npm run bench -- citus cells          idle cells on Citus
npm run bench -- postgres sustained [options]
  --minutes <n>          minutes at ${DEFAULT_SUSTAINED.perSecond} messages per second (30)
all
  --json                 the report as JSON on standard output, progress on standard error
`;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    rounds: { type: 'string' },
    messages: { type: 'string' },
    runs: { type: 'string' },
    alone: { type: 'boolean' },
    postgres: { type: 'boolean', default: false },
    seconds: { type: 'string' },
    minutes: { type: 'string' },
    waiting: { type: 'string' },
    connections: { type: 'string' },
    rates: { type: 'string' },
    workers: { type: 'string' },
    cells: { type: 'string' },
    peers: { type: 'string', default: 'ordinary' },
    'fsync-delay': { type: 'string' },
    json: { type: 'boolean' },
    help: { type: 'boolean' },
  },
});

const progress = (line: string) => process.stderr.write(`${line}\n`);

type Counted = 'rounds' | 'messages' | 'runs' | 'seconds' | 'minutes' | 'workers' | 'cells' | 'waiting';

function count(name: Counted, fallback: number): number {
  const text = values[name];
  if (text === undefined) return fallback;
  if (!/^[1-9]\d*$/.test(text)) throw new Error(`--${name} must be a positive integer, not "${text}"`);
  return Number(text);
}

function fsyncDelayMs(): number {
  const text = values['fsync-delay'] ?? '0ms';
  const match = /^(\d+(?:\.\d+)?)(ms|us)$/.exec(text);
  if (match === null) throw new Error(`--fsync-delay must be a duration such as 1ms or 500us, not "${text}"`);
  return Number(match[1]) / (match[2] === 'us' ? 1_000 : 1);
}

function peers(): Peers {
  const text = values.peers;
  if (text !== 'ordinary' && text !== 'bare') throw new Error(`--peers must be ordinary or bare, not "${text}"`);
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

async function runMemory(): Promise<void> {
  const figures = await measureMemory({ ...DEFAULT_MEMORY, origins: count('messages', DEFAULT_MEMORY.origins) });
  process.stdout.write(`${values.json ? JSON.stringify(figures) : figures.map(figureLine).join('\n')}\n`);
}

async function runTestKit(): Promise<void> {
  const figures = await measureTestKit({ messages: count('messages', DEFAULT_TEST_KIT.messages) });
  process.stdout.write(`${values.json ? JSON.stringify(figures) : figures.map(figureLine).join('\n')}\n`);
  if (figures.some(({ unit, value }) => unit === 'messages' && value !== 0)) process.exitCode = 1;
}

async function runTraces(): Promise<void> {
  const figures = await measureTraces({
    ...DEFAULT_TRACES,
    rounds: count('rounds', DEFAULT_TRACES.rounds),
    messages: count('messages', DEFAULT_TRACES.messages),
    onRound: (figure) => progress(figureLine(figure)),
  });
  process.stdout.write(`${values.json ? JSON.stringify(figures) : figures.map(figureLine).join('\n')}\n`);
  if (figures.some(({ unit, value }) => unit === 'messages' && value !== 0)) process.exitCode = 1;
}

async function runBefore(program: string): Promise<void> {
  const figures = await measureBefore({
    ...{ ...DEFAULT_BEFORE, program, isPostgres: values.postgres },
    rounds: count('rounds', DEFAULT_BEFORE.rounds),
    messages: count('messages', DEFAULT_BEFORE.messages),
    onRound: (figure) => progress(figureLine(figure)),
  });
  process.stdout.write(`${values.json ? JSON.stringify(figures) : figures.map(figureLine).join('\n')}\n`);
  if (figures.some(({ unit, value }) => unit === 'messages' && value !== 0)) process.exitCode = 1;
}

const LOOP_PARTS: readonly string[] = ['requests', 'floods', 'responses'];

async function runLoop(parts: readonly string[]): Promise<void> {
  const figures: Figure[] = [];
  const note = (figure: Figure) => {
    figures.push(figure);
    progress(figureLine(figure));
  };
  if (parts.includes('requests')) {
    for (const { name, blockedMs } of await measureLoopBlocks()) {
      if (blockedMs > BLOCKED_MS_MAX) note({ name, value: blockedMs, unit: 'ms' });
    }
  }
  const flood = { ...DEFAULT_FLOOD, seconds: count('seconds', DEFAULT_FLOOD.seconds) };
  if (parts.includes('floods')) await measureFloods(flood, note);
  const responses = { ...DEFAULT_RESPONSES, seconds: count('seconds', DEFAULT_RESPONSES.seconds) };
  if (parts.includes('responses')) await measureResponses(responses, note);
  process.stdout.write(`${values.json ? JSON.stringify(figures) : figures.map(figureLine).join('\n')}\n`);
}

async function runHostile(): Promise<void> {
  const attacks = values.messages && [{ origins: count('messages', 1), timeout: '15m' }];
  const figures = await measureHostile({
    ...DEFAULT_HOSTILE,
    ...(attacks && { attacks }),
    isPostgres: values.postgres,
    onFigure: (figure) => progress(figureLine(figure)),
  });
  process.stdout.write(`${values.json ? JSON.stringify(figures) : figures.map(figureLine).join('\n')}\n`);
  if (figures.some(({ name, value }) => name.startsWith('probes') && value !== 0)) process.exitCode = 1;
}

async function runCommandLine(): Promise<void> {
  const figures = await measureCommandLine({
    ...DEFAULT_COMMAND_LINE,
    rounds: count('rounds', DEFAULT_COMMAND_LINE.rounds),
    seconds: count('seconds', DEFAULT_COMMAND_LINE.seconds),
  });
  process.stdout.write(`${values.json ? JSON.stringify(figures) : figures.map(figureLine).join('\n')}\n`);
  if (figures.some(({ unit, value }) => unit === 'messages' && value !== 0)) process.exitCode = 1;
}

async function runOverload(): Promise<void> {
  const seconds = count('seconds', DEFAULT_OVERLOAD.seconds);
  const rounds = count('rounds', DEFAULT_OVERLOAD.rounds);
  const { DATABASE_URL: databaseUrl } = process.env;
  const levels = await measureOverload({
    ...DEFAULT_OVERLOAD,
    connections: values.connections?.split(',').map(Number) ?? DEFAULT_OVERLOAD.connections,
    seconds,
    rounds,
    workers: count('workers', DEFAULT_OVERLOAD.workers),
    ...(databaseUrl === undefined ? {} : { databaseUrl }),
    onRound: (level) => progress(overloadLine(level)),
  });
  process.stdout.write(
    `${values.json ? JSON.stringify(levels) : overloadTable(levels, `${rounds} rounds of ${seconds} s each`)}\n`,
  );
  if (levels.some(({ otherMissing }) => otherMissing > 0)) process.exitCode = 1;
}

async function runOutage(): Promise<void> {
  const report = await measureOutage({
    ...DEFAULT_OUTAGE,
    messages: count('messages', DEFAULT_OUTAGE.messages),
    isPostgres: values.postgres,
    onFigure: (figure) => progress(figureLine(figure)),
  });
  const rise = `concurrent requests at the slow origin, by second: ${report.slowRise.join(' ')}`;
  const text = [...report.figures.map(figureLine), rise, `lost: ${report.lost}`].join('\n');
  process.stdout.write(`${values.json ? JSON.stringify(report) : text}\n`);
  if (report.lost > 0) process.exitCode = 1;
}

function isConsolePart(text: string): text is ConsolePart {
  return CONSOLE_PARTS.some((part) => part === text);
}

async function runConsole(parts: readonly ConsolePart[]): Promise<void> {
  const figures = await measureConsole({
    ...DEFAULT_CONSOLE,
    parts,
    messages: count('messages', DEFAULT_CONSOLE.messages),
    runs: count('runs', DEFAULT_CONSOLE.runs),
    rounds: count('rounds', DEFAULT_CONSOLE.rounds),
    idleSeconds: count('seconds', DEFAULT_CONSOLE.idleSeconds),
    onFigure: (figure) => progress(figureLine(figure)),
  });
  process.stdout.write(`${values.json ? JSON.stringify(figures) : figures.map(figureLine).join('\n')}\n`);
}

async function runMetrics(): Promise<void> {
  const figures = await measureMetrics({
    ...DEFAULT_METRICS,
    messages: count('messages', DEFAULT_METRICS.messages),
    rounds: count('rounds', DEFAULT_METRICS.rounds),
  });
  process.stdout.write(`${values.json ? JSON.stringify(figures) : figures.map(figureLine).join('\n')}\n`);
}

const WORKFLOW_PARTS = ['steps', 'long', 'gaps', 'sleeping', 'waking', 'resuming'] as const;
type WorkflowPart = (typeof WORKFLOW_PARTS)[number];

function isWorkflowPart(text: string): text is WorkflowPart {
  return WORKFLOW_PARTS.some((part) => part === text);
}

async function runWorkflow(parts: readonly WorkflowPart[]): Promise<void> {
  const report: { steps?: StepFigures[]; figures: Figure[] } = { figures: [] };
  const rounds = count('rounds', DEFAULT_STEPS.rounds);
  if (parts.includes('steps')) {
    const waypost = (['library', 'own', 'bare', 'bare, within a call'] as const).map(
      (endpoint) => () => startWaypostContestant(endpoint, count('workers', 1)),
    );
    report.steps = await measureSteps({
      ...DEFAULT_STEPS,
      rounds,
      runs: count('runs', DEFAULT_STEPS.runs),
      contestants: values.alone ? waypost : [...waypost, restateContestant()],
      onLoad: (figures, round) => progress(loadLine(figures, round)),
    });
  }
  const note = (figures: Figure[]) => {
    for (const figure of figures) progress(figureLine(figure));
    report.figures.push(...figures);
  };
  const libraries = ['library', 'own'] as const;
  if (parts.includes('long')) for (const each of libraries) note(await measureLongRuns(each, DEFAULT_LONG_RUN));
  if (parts.includes('gaps')) for (const each of libraries) note(await measureGaps(each));
  if (parts.includes('sleeping')) {
    note(await measureSleeping({ ...DEFAULT_SLEEPING, runs: count('messages', DEFAULT_SLEEPING.runs) }));
  }
  if (parts.includes('waking')) note(await measureWaking({ ...DEFAULT_WAKING, isPostgres: values.postgres }));
  if (parts.includes('resuming')) note(await measureResuming({ ...DEFAULT_RESUMING, isPostgres: values.postgres }));
  const { steps, figures } = report;
  const lines = [...(steps ? [stepsTable(steps, rounds), ...gainsIn(steps)] : []), ...figures.map(figureLine)];
  process.stdout.write(`${values.json ? JSON.stringify(report) : lines.join('\n')}\n`);
  if (figures.some(({ unit, value }) => unit === 'runs' && value !== 0)) process.exitCode = 1;
}

/** The gain of our library over the official library, and over the reference, which is the last contestant. */
function gainsIn(steps: StepFigures[]): string[] {
  const [official, own] = [...new Set(steps.map(({ contestant }) => contestant))];
  const reference = values.alone ? undefined : steps.at(-1)?.contestant;
  return own === undefined ? [] : gainLines(steps, own, [official ?? [], reference ?? []].flat());
}

const POSTGRES_PARTS = ['workers', 'claims', 'jobs'] as const;
type PostgresPart = (typeof POSTGRES_PARTS)[number];

function isPostgresPart(text: string): text is PostgresPart {
  return POSTGRES_PARTS.some((part) => part === text);
}

function jobContestants(): StartContestant[] {
  // Two processes, like each of the libraries.
  const waypost = [1, 2].flatMap((count) => [startWaypostOnPostgres(count), startWaypostOnSqlite(count)]);
  if (values.alone) return waypost;
  const folder = installLibraries();
  const webhooks = LIBRARIES.map((library) => startWebhooksOn(library, folder));
  return [...waypost, ...webhooks, ...LIBRARIES.map((library) => startLibraryAlone(library, folder))];
}

async function runCitus(): Promise<void> {
  const rounds = count('rounds', DEFAULT_WORKERS.rounds);
  const figures = await measureCitus({
    ...DEFAULT_WORKERS,
    ...{ peers: peers(), rounds },
    onRound: (round, each) => progress(workersLine(each, round)),
  });
  process.stdout.write(`${values.json ? JSON.stringify(figures) : citusTable(figures, rounds)}\n`);
  if (figures.some(({ missing }) => missing > 0)) process.exitCode = 1;
}

async function runCitusCells(): Promise<void> {
  const figures = await measureCitusCells({
    ...DEFAULT_CITUS_CELLS,
    onFigures: (each) => progress(`worker at ${each.connectedTo}: ${cellsLine(each)}`),
  });
  process.stdout.write(`${values.json ? JSON.stringify(figures) : citusCellsTable(figures)}\n`);
}

async function runPostgres(parts: readonly PostgresPart[]): Promise<void> {
  const rounds = count('rounds', DEFAULT_WORKERS.rounds);
  const report: Record<string, unknown> = {};
  const texts: string[] = [];
  if (parts.includes('workers')) {
    const workers = await measureWorkers({
      ...DEFAULT_WORKERS,
      ...{ peers: peers(), rounds },
      onRound: (round, figures) => progress(workersLine(figures, round)),
    });
    report['workers'] = workers;
    texts.push(workersTable(workers, rounds));
    if (workers.figures.some(({ missing }) => missing > 0)) process.exitCode = 1;
  }
  if (parts.includes('claims')) {
    const figures = await measureClaims({ ...DEFAULT_CLAIMS, messages: count('messages', DEFAULT_CLAIMS.messages) });
    report['claims'] = figures;
    texts.push(figures.map(figureLine).join('\n'));
  }
  if (parts.includes('jobs')) {
    const jobs = await measureJobs({
      ...DEFAULT_JOBS,
      rounds: count('rounds', DEFAULT_JOBS.rounds),
      contestants: jobContestants(),
      onRound: (round, figures) => progress(jobsLine(figures, round)),
    });
    report['jobs'] = jobs;
    texts.push(jobsTable(jobs));
    if (jobs.some(({ missing }) => missing > 0)) process.exitCode = 1;
  }
  process.stdout.write(`${values.json ? JSON.stringify(report) : texts.join('\n\n')}\n`);
}

async function runSustained(): Promise<void> {
  const report = await measureSustained({
    ...DEFAULT_SUSTAINED,
    minutes: count('minutes', 30),
    onInterval: (interval) => progress(intervalLine(interval)),
  });
  process.stdout.write(`${values.json ? JSON.stringify(report) : sustainedSummary(report)}\n`);
  if (report.intervals.some(({ missing }) => missing > 0)) process.exitCode = 1;
}

async function runWorkers(databases: readonly Database[]): Promise<void> {
  const figures = await measureMessageCost({
    ...DEFAULT_COST,
    databases,
    rates: values.rates?.split(',').map(Number) ?? DEFAULT_COST.rates,
    rounds: count('rounds', DEFAULT_COST.rounds),
    seconds: count('seconds', DEFAULT_COST.seconds),
    onFigures: (each) => progress(costLine(each)),
  });
  process.stdout.write(`${values.json ? JSON.stringify(figures) : costTable(figures)}\n`);
  if (figures.some(({ missing }) => missing > 0)) process.exitCode = 1;
}

async function runCapacity(): Promise<void> {
  const report = await measureCapacity({
    ...DEFAULT_CAPACITY,
    rounds: count('rounds', DEFAULT_CAPACITY.rounds),
    onFigures: (each) => progress(costLine(each)),
  });
  process.stdout.write(`${values.json ? JSON.stringify(report) : capacityTable(report)}\n`);
  process.exit(); // the simulation never ends on its own
}

async function runCells(): Promise<void> {
  const figures = await measureCells({
    ...DEFAULT_CELLS,
    rounds: count('rounds', DEFAULT_CELLS.rounds),
    seconds: count('seconds', DEFAULT_CELLS.seconds),
    onFigures: (each) => progress(cellsLine(each)),
  });
  process.stdout.write(`${values.json ? JSON.stringify(figures) : cellsTable(figures)}\n`);
  if (figures.loaded.some(({ missing }) => missing > 0)) process.exitCode = 1;
}

async function runManyCells(): Promise<void> {
  const figures: Figure[] = [];
  await measureManyCells({
    ...DEFAULT_MANY_CELLS,
    cells: count('cells', DEFAULT_MANY_CELLS.cells),
    onFigure: (figure) => {
      figures.push(figure);
      progress(figureLine(figure));
    },
  });
  process.stdout.write(`${values.json ? JSON.stringify(figures) : figures.map(figureLine).join('\n')}\n`);
}

async function runCellsAway(): Promise<void> {
  const figures = await measureCellsAway({
    ...DEFAULT_CELLS_AWAY,
    workers: count('workers', DEFAULT_CELLS_AWAY.workers),
    rounds: count('rounds', DEFAULT_CELLS_AWAY.rounds),
    seconds: count('seconds', DEFAULT_CELLS_AWAY.seconds),
    onFigures: (each) => progress(awayLine(each)),
  });
  process.stdout.write(`${values.json ? JSON.stringify(figures) : awayTable(figures)}\n`);
  if (figures.some(({ missing }) => missing > 0)) process.exitCode = 1;
}

async function runMove(): Promise<void> {
  const figures = await measureProjectMove({
    messages: count('messages', DEFAULT_PROJECT_MOVE.messages),
    waiting: count('waiting', DEFAULT_PROJECT_MOVE.waiting),
    onProgress: (step) => progress(step),
  });
  process.stdout.write(`${values.json ? JSON.stringify(figures) : projectMoveLine(figures)}\n`);
}

const [area, part, ...more] = positionals;
if (values.help) process.stdout.write(HELP);
else if (area === undefined) await runComparison();
else if (area === 'backlog' && part === undefined) await runBacklog();
else if (area === 'lanes' && part === undefined) await runLanes();
else if (area === 'memory' && part === undefined) await runMemory();
else if (area === 'capacity' && part === undefined) await runCapacity();
else if (area === 'cli' && part === undefined) await runCommandLine();
else if (area === 'traces' && part === undefined) await runTraces();
else if (area === 'before' && part !== undefined && more.length === 0) await runBefore(part);
else if (area === 'hostile' && part === undefined) await runHostile();
else if (area === 'test-kit' && part === undefined) await runTestKit();
else if (area === 'loop' && part === undefined) await runLoop(LOOP_PARTS);
else if (area === 'loop' && more.length === 0 && part !== undefined && LOOP_PARTS.includes(part)) await runLoop([part]);
else if (area === 'overload' && part === undefined) await runOverload();
else if (area === 'outage' && part === undefined) await runOutage();
else if (area === 'console' && part === undefined) await runConsole(CONSOLE_PARTS);
else if (area === 'console' && more.length === 0 && part !== undefined && isConsolePart(part)) await runConsole([part]);
else if (area === 'workers' && part === undefined) await runWorkers(DEFAULT_COST.databases);
else if (area === 'workers' && (part === 'SQLite' || part === 'PostgreSQL')) await runWorkers([part]);
else if (area === 'cells' && part === undefined) await runCells();
else if (area === 'cells' && part === 'away' && more.length === 0) await runCellsAway();
else if (area === 'cells' && part === 'many' && more.length === 0) await runManyCells();
else if (area === 'move' && part === undefined) await runMove();
else if (area === 'citus' && part === undefined) await runCitus();
else if (area === 'citus' && part === 'cells' && more.length === 0) await runCitusCells();
else if (area === 'metrics' && part === undefined) await runMetrics();
else if (area === 'workflow' && part === undefined) await runWorkflow(WORKFLOW_PARTS);
else if (area === 'workflow' && more.length === 0 && part !== undefined && isWorkflowPart(part)) {
  await runWorkflow([part]);
} else if (area === 'postgres' && part === undefined) await runPostgres(POSTGRES_PARTS);
else if (area === 'postgres' && more.length === 0 && part === 'sustained') await runSustained();
else if (area === 'postgres' && more.length === 0 && part !== undefined && isPostgresPart(part)) {
  await runPostgres([part]);
} else {
  process.stderr.write(HELP);
  process.exitCode = 2;
}
