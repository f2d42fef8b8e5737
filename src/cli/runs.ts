/** `waypost runs`: shows workflow runs of a running server, cancels them, and starts failed ones again. */
import { columns } from './columns.ts';
import { CommandFailed, EXIT, printJson } from './command.ts';
import { actOnMany, BULK } from './http/bulk.ts';
import { countOf, readPages } from './http/pages.ts';
import type { Server } from './http/server.ts';
import { type Call, commandOf, type Verb } from './http/verb.ts';
import { rowOf, timelineOf } from './runs/timeline.ts';
import type { RunView } from './runs/view.ts';

/** Shorter words for the states of a run. */
const STATES: Readonly<Record<string, string>> = {
  active: 'RUN_STARTED',
  success: 'RUN_SUCCESS',
  failed: 'RUN_FAILED',
  canceled: 'RUN_CANCELED',
};

/** What the server gives at a time. */
const PAGE_MAX = 10;
/** Characters of each body to request: more than the lines that are shown. */
const BODY_LENGTH_MAX = 2_000;

const list: Verb = {
  meaning: `The latest runs, newest first. --state also understands ${Object.keys(STATES).join(', ')}.`,
  filtersOf: 'listWorkflowRuns',
  example: 'runs list --state failed --label eu',
  async run(call) {
    const { query, terminal } = call;
    const states = query.getAll('state').map(stateOf);
    query.delete('state');
    for (const state of states) query.append('state', state);
    if (!query.has('trimBody')) query.set('trimBody', '0');
    const found = await readRuns(call, countOf(call));
    if (call.isJson) printJson(terminal, found);
    else {
      const nowMs = Date.now();
      const headings = ['RUN', 'STATE', 'BEGAN (UTC)', 'TOOK', 'STEPS', 'WORKFLOW'];
      terminal.print(columns([headings, ...found.map((run) => rowOf(run, nowMs))]));
    }
    return EXIT.ok;
  },
};

const show: Verb = {
  words: '<run id>',
  meaning:
    'What each step of a run came to, when, how long after the step before, and what the run returned or why it failed. Of several runs with the id the latest one.',
  options: { '--all': 'Every run with the id.' },
  example: 'runs show wfr_order-42',
  async run(call) {
    const { words, query, terminal, isJson } = call;
    const [id = ''] = words;
    const isAll = call.values('all').length > 0;
    query.set('workflowRunId', id);
    if (!isJson) query.set('trimBody', String(BODY_LENGTH_MAX));
    const found = await readRuns(call, isAll ? Number.POSITIVE_INFINITY : 1);
    if (found.length === 0)
      throw new CommandFailed(`there is no run ${JSON.stringify(id)}, or nothing of it is kept`, EXIT.notFound);
    if (isJson) printJson(terminal, isAll ? found : found[0]);
    else {
      const shown = { nowMs: Date.now(), color: terminal.color };
      terminal.print(found.map((run) => timelineOf(run, shown)).join('\n'));
    }
    return EXIT.ok;
  },
};

const cancel: Verb = {
  words: '[<run id>...]',
  meaning: 'Ends the active runs with these ids, or all that match the filters.',
  filtersOf: 'cancelWorkflowRuns',
  options: BULK,
  example: 'runs cancel --workflow-url https://example.com/api/onboarding --dry-run',
  run: (call) =>
    actOnMany(
      call,
      {
        ids: 'workflowRunIds',
        verb: 'cancel',
        noun: ['run', 'runs'],
        count: countActive,
        async act({ server, query }) {
          // Without a count the server would take a hundred.
          if (!query.has('count')) query.set('count', String(Number.MAX_SAFE_INTEGER));
          return (await server.ask<{ cancelled: number }>('cancelWorkflowRuns', { query })).cancelled;
        },
      },
      'Cancelled',
    ),
};

const resume: Verb = {
  words: '<run id or DLQ id>',
  meaning: 'Starts a new run that goes on where the failed one stopped: what it recorded is not done again.',
  example: 'runs resume wfr_order-42',
  run: (call) => start(call, 'resumeWorkflowRun', 'Resumed'),
};

const restart: Verb = {
  words: '<run id or DLQ id>',
  meaning: 'Starts a new run from the beginning, with the payload of the failed one.',
  example: 'runs restart wfr_order-42',
  run: (call) => start(call, 'restartWorkflowRun', 'Restarted'),
};

export const runs = commandOf('runs', { list, show, cancel, resume, restart });

/** Lists the runs that a cancel would end. There the URL is a beginning, in a list it is the whole. */
async function countActive(call: Call): Promise<number> {
  const query = new URLSearchParams({ state: 'RUN_STARTED', trimBody: '0' });
  const urls = call.query.getAll('workflowUrl');
  const isExact = call.query.get('workflowUrlExactMatch') === 'true';
  for (const [name, value] of call.query) {
    if (name === 'workflowRunIds') query.append('workflowRunId', value);
    else if (name !== 'workflowUrlExactMatch' && (name !== 'workflowUrl' || isExact)) query.append(name, value);
  }
  let count = 0;
  const amount = {
    itemsOf: ({ runs }: { runs: RunView[] }) => runs,
    countMax: Number.POSITIVE_INFINITY,
    pageMax: PAGE_MAX,
  };
  for await (const page of readPages({ ...call, query }, 'listWorkflowRuns', amount)) {
    count += page.filter(
      ({ workflowUrl }) => urls.length === 0 || urls.some((url) => workflowUrl.startsWith(url)),
    ).length;
  }
  return Math.min(count, countOf(call, Number.POSITIVE_INFINITY));
}

async function start({ server, words, terminal, isJson }: Call, operationId: string, done: string): Promise<number> {
  const dlqId = await dlqIdOf(server, words[0] ?? '');
  const started = await server.ask<{ workflowRunId: string }>(operationId, { words: [dlqId] });
  if (isJson) printJson(terminal, started);
  else terminal.print(`${done} as ${started.workflowRunId}.\n`);
  return EXIT.ok;
}

/** The DLQ id for a DLQ id or a run id; for a run id, that of its latest entry. */
async function dlqIdOf(server: Server, name: string): Promise<string> {
  if (/^\d+-\d+$/.test(name)) return name;
  const query = new URLSearchParams({ workflowRunId: name, count: '1' });
  const { messages } = await server.ask<{ messages: { dlqId: string }[] }>('listFailedWorkflowRuns', { query });
  const [dead] = messages;
  if (!dead) throw new CommandFailed(`there is no run ${JSON.stringify(name)} in the DLQ`, EXIT.notFound);
  return dead.dlqId;
}

async function readRuns(call: Call, countMax: number): Promise<RunView[]> {
  const found: RunView[] = [];
  const itemsOf = ({ runs: page }: { runs: RunView[] }) => page;
  for await (const page of readPages(call, 'listWorkflowRuns', { itemsOf, countMax, pageMax: PAGE_MAX }))
    found.push(...page);
  return found;
}

function stateOf(text: string): string {
  const state = STATES[text] ?? (/^(RUN|STEP)_/.test(text) ? text : undefined);
  if (state !== undefined) return state;
  throw new CommandFailed(
    `--state: must be ${Object.keys(STATES).join(', ')}, not ${JSON.stringify(text)}`,
    EXIT.usage,
  );
}
