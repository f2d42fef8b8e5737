/**
 * The workflow scenes of the demo, with the official client. Each scene triggers a run and waits for the expected state.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { Client } from '@upstash/workflow';
import { timelineOf } from '../runs/timeline.ts';
import type { WorkflowApp } from './workflow-app.ts';
import type { Order } from './workflows.ts';

const LIMIT_MS = 30_000;
const POLL_MS = 100;

type Run = Awaited<ReturnType<Client['logs']>>['runs'][number];

export interface WorkflowStage {
  client: Client;
  app: WorkflowApp;
  write: (line: string) => void;
  color: boolean;
}

const ORDER: Order = { number: 42, item: 'a kettle' };

/** Plays all scenes; rejects if a run does not end as expected. */
export async function playWorkflows(stage: WorkflowStage): Promise<void> {
  await showEveryStep(stage);
  await resumeFailedRun(stage);
}

async function showEveryStep({ client, app, write, color }: WorkflowStage): Promise<void> {
  write(
    '\nTriggering two workflows: an order with every kind of step, and a letter that waits for the order to arrive.',
  );
  const letter = await client.trigger({ url: `${app.url}/letter`, body: ORDER });
  const order = await client.trigger({ url: `${app.url}/order`, body: ORDER });
  const eventId = `paid-${ORDER.number}`;
  await poll(`no run waits for "${eventId}"`, async () => (await client.getWaiters({ eventId }))[0]);
  const notified = await client.notify({ eventId, eventData: { by: 'Ann' } });
  write(`The order waits for its payment, the event "${eventId}"; notified ${notified.length} waiting run.\n`);

  const ended = await waitForRun('RUN_SUCCESS', client, order.workflowRunId);
  write(timeline(ended, color));
  write(`\nIt returned: ${String(ended.workflowRunResponse)}`);
  write('\nThe letter, which waited for the arrival:\n');
  write(timeline(await waitForRun('RUN_SUCCESS', client, letter.workflowRunId), color));
}

async function resumeFailedRun(stage: WorkflowStage): Promise<void> {
  const { client, write, color } = stage;
  const dlqId = await playFailedRun(stage);
  write(`\nThe cause is fixed; resuming ${dlqId}. The first step keeps its result.\n`);
  const resumed = await client.dlq.resume({ dlqId });
  write(timeline(await waitForRun('RUN_SUCCESS', client, resumed.workflowRunId), color));
}

/** Triggers a run that fails. Resolves to the DLQ id of the run once resuming the run would succeed. */
export async function playFailedRun({ client, app, write, color }: WorkflowStage): Promise<string> {
  write('\nTriggering a run whose second step fails permanently.\n');
  app.closeBank();
  const { workflowRunId } = await client.trigger({ url: `${app.url}/refund`, body: ORDER });
  const failed = await waitForRun('RUN_FAILED', client, workflowRunId);
  write(timeline(failed, color));
  if (failed.dlqId === undefined) throw new Error('the failed run is not in the dead letter queue');
  app.openBank();
  return failed.dlqId;
}

function waitForRun(state: Run['workflowState'], client: Client, workflowRunId: string): Promise<Run> {
  return poll(`the run ${workflowRunId} did not reach ${state}`, async () => {
    const { runs } = await client.logs({ filter: { workflowRunId } });
    return runs.find(({ workflowState }) => workflowState === state);
  });
}

/** Repeats `ask` until `ask` returns a value. After the time limit, rejects with the message `otherwise`. */
async function poll<T>(otherwise: string, ask: () => Promise<T | undefined>): Promise<T> {
  for (let waitedMs = 0; waitedMs < LIMIT_MS; waitedMs += POLL_MS) {
    const found = await ask();
    if (found !== undefined) return found;
    await delay(POLL_MS);
  }
  throw new Error(`after ${LIMIT_MS} ms ${otherwise}`);
}

function timeline(run: Run, color: boolean): string {
  const lines = timelineOf(run, { nowMs: run.workflowRunCreatedAt, color }).trimEnd().split('\n');
  return lines.map((line) => (line === '' ? '' : `  ${line}`)).join('\n');
}
