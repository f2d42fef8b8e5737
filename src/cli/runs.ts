/** `waypost runs`: shows workflow runs of a running server, cancels them, and starts failed ones again. */
import { columns } from './columns.ts';
import { type Command, CommandFailed, EXIT, type Terminal, takeSwitch, takeValue, takeWord } from './command.ts';
import { printJson, required, unknownAction } from './operate.ts';
import { type Server, serverOf } from './runs/server.ts';
import { rowOf, timelineOf } from './runs/timeline.ts';
import type { RunView } from './runs/view.ts';

const STATES: Readonly<Record<string, string>> = {
  active: 'RUN_STARTED',
  success: 'RUN_SUCCESS',
  failed: 'RUN_FAILED',
  canceled: 'RUN_CANCELED',
};

const COUNT_DEFAULT = 20;
/** Characters of each body to request: more than the lines that are shown. */
const BODY_LENGTH_MAX = 2_000;

export const runs: Command = {
  summary: 'look at workflow runs, cancel them, start failed ones again',
  help: () =>
    `Usage: waypost runs [list] [--state <state>] [--workflow <url>] [--label <label>] [--count <n>] [--json] [options]
       waypost runs show <run id> [--all] [--json] [options]
       waypost runs cancel <run id>... [--json] [options]
       waypost runs resume <run id or DLQ id> [--json] [options]
       waypost runs restart <run id or DLQ id> [--json] [options]

Asks a running server over HTTP, with a token of the project whose runs are meant. cancel, resume and restart need a
full token.

  list
      The latest runs, newest first.
  show <run id>
      What each step of a run came to, when, how long after the step before, and what the run returned or why it
      failed. Of several runs with the id the latest one, with --all every one.
  cancel <run id>...
      Ends active runs.
  resume <run id or DLQ id>
      Starts a new run that goes on where the failed one stopped: what it recorded is not done again.
  restart <run id or DLQ id>
      Starts a new run from the beginning, with the payload of the failed one.
  --state <state>
      active, success, failed or canceled.
  --workflow <url>
      Only runs of the workflow at this URL.
  --label <label>
      Only runs with this label.
  --count <n>
      How many runs to list; ${COUNT_DEFAULT} without it.
  --json
      Print JSON.
  --url <address>
      Address of the server. Environment: QSTASH_URL. Default: http://127.0.0.1:8080
  --token <token>
      Token of the project. Environment: QSTASH_TOKEN. Default: the one of "waypost dev", which everybody knows.
`,
  async run(args, terminal) {
    const { given: json, rest: afterJson } = takeSwitch(args, '--json');
    const { server, rest: afterServer } = serverOf(afterJson, terminal.env);
    const { word: action = 'list', rest } = takeWord(afterServer);
    switch (action) {
      case 'list':
        return list(server, rest, terminal, json);
      case 'show':
        return show(server, rest, terminal, json);
      case 'cancel':
        return cancel(server, rest, terminal, json);
      case 'resume':
      case 'restart':
        return start(server, action, rest, terminal, json);
      default:
        return unknownAction('runs', action, ['list', 'show', 'cancel', 'resume', 'restart']);
    }
  },
};

async function list(server: Server, args: readonly string[], terminal: Terminal, json: boolean): Promise<number> {
  const { value: state, rest: afterState } = takeValue(args, '--state');
  const { value: workflow, rest: afterWorkflow } = takeValue(afterState, '--workflow');
  const { value: label, rest: afterLabel } = takeValue(afterWorkflow, '--label');
  const { value: count, rest } = takeValue(afterLabel, '--count');
  nothingLeft(rest);
  const query = new URLSearchParams({ trimBody: '0' });
  if (state !== undefined) query.set('state', stateOf(state));
  if (workflow !== undefined) query.set('workflowUrl', workflow);
  if (label !== undefined) query.set('label', label);
  const found = await readRuns(server, query, countOf(count));
  if (json) {
    printJson(terminal, found);
    return EXIT.ok;
  }
  const nowMs = Date.now();
  const headings = ['RUN', 'STATE', 'BEGAN (UTC)', 'TOOK', 'STEPS', 'WORKFLOW'];
  terminal.print(columns([headings, ...found.map((run) => rowOf(run, nowMs))]));
  return EXIT.ok;
}

async function show(server: Server, args: readonly string[], terminal: Terminal, json: boolean): Promise<number> {
  const { given: all, rest: afterAll } = takeSwitch(args, '--all');
  const { word, rest } = takeWord(afterAll);
  const id = required(word, "runs show: the run's id");
  nothingLeft(rest);
  const query = new URLSearchParams({ workflowRunId: id, ...(json ? {} : { trimBody: String(BODY_LENGTH_MAX) }) });
  const found = await readRuns(server, query, all ? Number.MAX_SAFE_INTEGER : 1);
  if (found.length === 0) throw new CommandFailed(`there is no run ${JSON.stringify(id)}, or nothing of it is kept`);
  if (json) {
    printJson(terminal, all ? found : found[0]);
  } else {
    const shown = { nowMs: Date.now(), color: terminal.color };
    terminal.print(found.map((run) => timelineOf(run, shown)).join('\n'));
  }
  return EXIT.ok;
}

async function cancel(server: Server, ids: readonly string[], terminal: Terminal, json: boolean): Promise<number> {
  required(ids[0], "runs cancel: the run's id");
  const query = new URLSearchParams(ids.map((id): [string, string] => ['workflowRunIds', id]));
  const { cancelled } = await server.ask<{ cancelled: number }>('DELETE', `/v2/workflows/runs?${query}`);
  if (json) printJson(terminal, { cancelled });
  else terminal.print(`Cancelled ${cancelled} of ${ids.length} ${ids.length === 1 ? 'run' : 'runs'}.\n`);
  if (cancelled === 0) throw new CommandFailed('no such run is active');
  return EXIT.ok;
}

async function start(
  server: Server,
  action: 'resume' | 'restart',
  args: readonly string[],
  terminal: Terminal,
  json: boolean,
): Promise<number> {
  const { word, rest } = takeWord(args);
  const name = required(word, `runs ${action}: the id of the run or of its DLQ entry`);
  nothingLeft(rest);
  const dlqId = await dlqIdOf(server, name);
  const started = await server.ask<{ workflowRunId: string; workflowCreatedAt: number }>(
    'POST',
    `/v2/workflows/dlq/${action}/${encodeURIComponent(dlqId)}`,
  );
  if (json) printJson(terminal, started);
  else terminal.print(`${action === 'resume' ? 'Resumed' : 'Restarted'} as ${started.workflowRunId}.\n`);
  return EXIT.ok;
}

/** The DLQ id for a DLQ id or a run id; for a run id, that of its latest entry. */
async function dlqIdOf(server: Server, name: string): Promise<string> {
  if (/^\d+-\d+$/.test(name)) return name;
  const query = new URLSearchParams({ workflowRunId: name, count: '1' });
  const { messages } = await server.ask<{ messages: { dlqId: string }[] }>('GET', `/v2/workflows/dlq?${query}`);
  const [dead] = messages;
  if (!dead) throw new CommandFailed(`there is no run ${JSON.stringify(name)} in the DLQ`);
  return dead.dlqId;
}

async function readRuns(server: Server, query: URLSearchParams, count: number): Promise<RunView[]> {
  const found: RunView[] = [];
  for (let cursor: string | undefined = ''; cursor !== undefined && found.length < count; ) {
    if (cursor !== '') query.set('cursor', cursor);
    query.set('count', String(Math.min(10, count - found.length)));
    const page: { runs: RunView[]; cursor?: string } = await server.ask('GET', `/v2/workflows/logs?${query}`);
    found.push(...page.runs);
    cursor = page.cursor;
  }
  return found;
}

function stateOf(text: string): string {
  const state = STATES[text];
  if (state === undefined) {
    throw new CommandFailed(
      `--state: must be ${Object.keys(STATES).join(', ')}, not ${JSON.stringify(text)}`,
      EXIT.usage,
    );
  }
  return state;
}

function countOf(text: string | undefined): number {
  const count = text === undefined ? COUNT_DEFAULT : Number(text);
  if (!Number.isSafeInteger(count) || count < 1)
    throw new CommandFailed('--count: a whole number of at least 1 is needed', EXIT.usage);
  return count;
}

function nothingLeft([word]: readonly string[]): void {
  if (word !== undefined)
    throw new CommandFailed(`runs: what is ${JSON.stringify(word)}? See waypost runs --help`, EXIT.usage);
}
