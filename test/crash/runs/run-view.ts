/** Reads the flat log and the DLQ of runs, page by page, from a server that has no more work. */
import type { Client } from '../client.ts';
import { all } from '../reading.ts';

export interface LoggedRun {
  runId: string;
  createdAt: number;
  program: string;
  /** The first and final states of the run, in order. */
  states: string[];
  /** The result of the run. */
  response: string | undefined;
  /** The id of the run that invoked it. */
  invoker: string | undefined;
  /** The first and final states of each message, by id. */
  messages: Map<string, string[]>;
  /** Results of steps, by the ids of their messages. */
  results: Map<string, string>;
}

export interface DeadRun {
  runId: string;
  failureCallback: string | undefined;
}

export interface RunView {
  runs: LoggedRun[];
  dead: DeadRun[];
}

const RUN_STATES = new Set(['RUN_STARTED', 'RUN_SUCCESS', 'RUN_FAILED', 'RUN_CANCELED']);
const MESSAGE_STATES = new Set(['CREATED', 'DELIVERED', 'FAILED', 'CANCELED']);

export async function readRunView(client: Client): Promise<RunView> {
  const events = await all<Event>(client, '/v2/workflows/messageLogs?count=1000', 'events');
  const runs = new Map<string, LoggedRun>();
  for (const event of events.reverse()) {
    const key = `${event.workflowRunId}@${event.workflowCreatedAt}`;
    let run = runs.get(key);
    if (run === undefined) {
      run = newRun(event);
      runs.set(key, run);
    }
    if (event.stepInfo === undefined) {
      if (RUN_STATES.has(event.state)) run.states.push(event.state);
      run.response ??= event.workflowRunResponse;
      run.invoker ??= event.invokerWorkflowRunId;
    } else if (MESSAGE_STATES.has(event.state)) {
      const { messageId } = event.stepInfo;
      run.messages.set(messageId, [...(run.messages.get(messageId) ?? []), event.state]);
      if (event.stepInfo.out !== undefined) run.results.set(messageId, event.stepInfo.out);
    }
  }
  const entries = await all<DeadEntry>(client, '/v2/workflows/dlq?count=100', 'messages');
  return {
    runs: [...runs.values()],
    dead: entries.map(({ workflowRunId, failureCallbackInfo }) => ({
      runId: workflowRunId,
      failureCallback: failureCallbackInfo?.state,
    })),
  };
}

function newRun({ workflowRunId, workflowCreatedAt, workflowUrl }: Event): LoggedRun {
  return {
    runId: workflowRunId,
    createdAt: workflowCreatedAt,
    program: workflowUrl.slice(workflowUrl.lastIndexOf('/') + 1),
    states: [],
    response: undefined,
    invoker: undefined,
    messages: new Map(),
    results: new Map(),
  };
}

/** The members of an event of the flat view (contract W 18.2) that are used here. */
interface Event {
  state: string;
  workflowRunId: string;
  workflowCreatedAt: number;
  workflowUrl: string;
  workflowRunResponse?: string;
  invokerWorkflowRunId?: string;
  stepInfo?: { messageId: string; out?: string };
}

interface DeadEntry {
  workflowRunId: string;
  failureCallbackInfo?: { state: string };
}
