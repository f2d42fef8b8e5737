/** `waypost runs`: lists, shows, follows, cancels, resumes, restarts and deletes workflow runs. */
import { columns, inZone } from '../columns.ts';
import { CommandFailed, EXIT, entryOf, printJson } from '../command.ts';
import { actOnMany, BULK_OPTIONS } from '../http/bulk.ts';
import { countOf, readItems, sumBatches, sumPages } from '../http/pages.ts';
import type { Server } from '../http/server.ts';
import { type Call, commandOf, type Verb } from '../http/verb.ts';
import { resumeAllParked, resumeIfParked } from '../runs/parked.ts';
import { tail } from '../runs/tail.ts';
import { rowOf, timelineOf } from '../runs/timeline.ts';
import { BODY_LENGTH_MAX, type RunView } from '../runs/view.ts';

/** The short names of the states of a run, which the filter accepts. */
const STATES: Readonly<Record<string, string>> = {
  active: 'RUN_STARTED',
  success: 'RUN_SUCCESS',
  failed: 'RUN_FAILED',
  canceled: 'RUN_CANCELED',
  parked: 'STEP_PARKED',
};

/** Limits of the server for one request. */
const PAGE_MAX = 10;
const CANCELLED_MAX = 100;
const FAILED_PAGE_MAX = 100;
const STARTED_PAGE_MAX = 50;

const RUNS = { member: 'runs', pageMax: PAGE_MAX };
const FAILED_WORDS = '[<run id or DLQ id>...]';

const list: Verb = {
  meaning: `Lists the latest runs, newest first. --state also accepts ${Object.keys(STATES).join(', ')}.`,
  filtersOf: 'listWorkflowRuns',
  example: 'runs list --state failed --label eu',
  async run(call) {
    const { query, terminal } = call;
    const states = query.getAll('state').map(stateOf);
    query.delete('state');
    for (const state of states) query.append('state', state);
    if (!query.has('trimBody')) query.set('trimBody', '0');
    const found = await readItems<RunView>(call, 'listWorkflowRuns', { ...RUNS, countMax: countOf(call) });
    if (call.isJson) printJson(terminal, found);
    else {
      const nowMs = Date.now();
      const headings = ['RUN', 'STATE', inZone('STARTED'), 'DURATION', 'STEPS', 'WORKFLOW'];
      terminal.print(columns([headings, ...found.map((run) => rowOf(run, nowMs))]));
    }
    return EXIT.ok;
  },
};

const show: Verb = {
  words: '<run id>',
  meaning:
    'Shows the steps of a run with their results, times and durations, and the result of the run or the cause of its failure. If several runs have the id, it shows the latest.',
  options: { '--all': 'Show every run with the id.' },
  example: 'runs show wfr_order-42',
  async run(call) {
    const { words, query, terminal, isJson } = call;
    const [id = ''] = words;
    const isAll = call.values('all').length > 0;
    query.set('workflowRunId', id);
    if (!isJson) query.set('trimBody', String(BODY_LENGTH_MAX));
    const found = await readItems<RunView>(call, 'listWorkflowRuns', {
      ...RUNS,
      countMax: isAll ? Number.POSITIVE_INFINITY : 1,
    });
    if (found.length === 0)
      throw new CommandFailed(`there is no run ${JSON.stringify(id)}, or its data has expired`, EXIT.notFound);
    if (isJson) printJson(terminal, isAll ? found : found[0]);
    else {
      const display = { nowMs: Date.now(), color: terminal.color };
      terminal.print(found.map((run) => timelineOf(run, display)).join('\n'));
    }
    return EXIT.ok;
  },
};

const cancel: Verb = {
  words: '[<run id>...]',
  meaning: 'Cancels the active runs with these ids, or all that match the filters.',
  filtersOf: 'cancelWorkflowRuns',
  options: BULK_OPTIONS,
  example: 'runs cancel --workflow-url https://example.com/api/onboarding --dry-run',
  run: (call) =>
    actOnMany(
      call,
      {
        ids: 'workflowRunIds',
        verb: 'cancel',
        noun: ['run', 'runs'],
        count: countActive,
        act: sumBatches('cancelWorkflowRuns', {
          amountOf: ({ cancelled }: { cancelled: number }) => cancelled,
          pageMax: CANCELLED_MAX,
        }),
      },
      'Cancelled',
    ),
};

const resumeFailed = startVerb(
  'resume',
  'Starts a new run that continues where the failed one stopped: recorded steps are not executed again.',
  'Resumed',
);

const resume: Verb = {
  ...resumeFailed,
  meaning: `${resumeFailed.meaning} A parked run, whose code has changed, is attempted again itself.`,
  options: { ...BULK_OPTIONS, '--parked': 'Resume all parked runs instead of failed ones.' },
  async run(call) {
    if (call.values('parked').length > 0) return resumeAllParked(call);
    const isOne = call.words.length === 1 && call.query.size === 0 && call.values('dry-run').length === 0;
    return isOne && (await resumeIfParked(call)) ? EXIT.ok : resumeFailed.run(call);
  },
};

const restart = startVerb(
  'restart',
  'Starts a new run from the beginning, with the payload of the failed run.',
  'Restarted',
);

const deleteRuns: Verb = {
  words: FAILED_WORDS,
  meaning: 'Deletes failed runs permanently: they can no longer be resumed or restarted.',
  filtersOf: 'deleteFailedWorkflowRuns',
  options: BULK_OPTIONS,
  example: 'runs delete --to-date 2026-01-01 --dry-run',
  async run(call) {
    const amountOf = ({ deleted }: { deleted: number }) => deleted;
    const act = sumPages('deleteFailedWorkflowRuns', { amountOf, pageMax: FAILED_PAGE_MAX });
    return actOnMany(await withDlqIds(call), { ...FAILED_RUNS, verb: 'delete', act }, 'Deleted');
  },
};

export const runs = commandOf('runs', { list, show, tail, cancel, resume, restart, delete: deleteRuns });

/**
 * A single run is started at once, and the id of the new run is printed. Several runs are counted and confirmed first.
 */
function startVerb(verb: 'resume' | 'restart', meaning: string, done: string): Verb {
  return {
    words: FAILED_WORDS,
    meaning: `${meaning} Several ids or filters select runs in the DLQ.`,
    filtersOf: `${verb}WorkflowRuns`,
    options: BULK_OPTIONS,
    example: `runs ${verb} --workflow-url https://example.com/api/onboarding --dry-run`,
    async run(call) {
      const isOne = call.words.length === 1 && call.query.size === 0;
      if (isOne && !call.values('dry-run').length) return start(await withDlqIds(call), `${verb}WorkflowRun`, done);
      const amountOf = ({ workflowRuns }: { workflowRuns: unknown[] }) => workflowRuns.length;
      const act = sumPages(`${verb}WorkflowRuns`, { amountOf, pageMax: STARTED_PAGE_MAX });
      return actOnMany(await withDlqIds(call), { ...FAILED_RUNS, verb, act }, done);
    },
  };
}

const FAILED_RUNS = {
  ids: 'dlqIds',
  noun: ['failed run', 'failed runs'] as const,
  count: sumPages('listFailedWorkflowRuns', {
    amountOf: ({ messages }: { messages: unknown[] }) => messages.length,
    pageMax: FAILED_PAGE_MAX,
  }),
};

/** Replaces the run ids of the call with DLQ ids. */
async function withDlqIds(call: Call): Promise<Call> {
  const words: string[] = [];
  for (const word of call.words) words.push(await dlqIdOf(call.server, word));
  return { ...call, words };
}

/** Counts the runs that a cancel would end. A cancel takes the URL as a prefix; the list filters by the exact URL. */
async function countActive(call: Call, onProgress: (done: number) => void): Promise<number> {
  const query = new URLSearchParams({ state: 'RUN_STARTED', trimBody: '0' });
  const urls = call.query.getAll('workflowUrl');
  const isExact = call.query.get('workflowUrlExactMatch') === 'true';
  for (const [name, value] of call.query) {
    if (name === 'workflowRunIds') query.append('workflowRunId', value);
    else if (name !== 'workflowUrlExactMatch' && (name !== 'workflowUrl' || isExact)) query.append(name, value);
  }
  const isSelected = ({ workflowUrl }: RunView) => urls.length === 0 || urls.some((url) => workflowUrl.startsWith(url));
  const amountOf = ({ runs }: { runs: RunView[] }) => runs.filter(isSelected).length;
  return sumPages('listWorkflowRuns', { amountOf, pageMax: PAGE_MAX })({ ...call, query }, onProgress);
}

async function start({ server, words, terminal, isJson }: Call, operationId: string, done: string): Promise<number> {
  const started = await server.ask<{ workflowRunId: string }>(operationId, { words });
  if (isJson) printJson(terminal, started);
  else terminal.print(`${done} as ${started.workflowRunId}.\n`);
  return EXIT.ok;
}

/** Returns `name` if it is a DLQ id. If it is a run id, returns the DLQ id of the latest failed run with this id. */
async function dlqIdOf(server: Server, name: string): Promise<string> {
  if (/^\d+-\d+$/.test(name)) return name;
  const query = new URLSearchParams({ workflowRunId: name, count: '1' });
  const { messages } = await server.ask<{ messages: { dlqId: string }[] }>('listFailedWorkflowRuns', { query });
  const [dead] = messages;
  if (!dead) throw new CommandFailed(`there is no run ${JSON.stringify(name)} in the DLQ`, EXIT.notFound);
  return dead.dlqId;
}

function stateOf(text: string): string {
  const state = entryOf(STATES, text) ?? (/^(RUN|STEP)_/.test(text) ? text : undefined);
  if (state !== undefined) return state;
  throw new CommandFailed(
    `--state: must be ${Object.keys(STATES).join(', ')}, not ${JSON.stringify(text)}`,
    EXIT.usage,
  );
}
