/**
 * An endpoint as users write it: an Express app with the official library or ours. The app serves `/three`, the program
 * of the comparison, `/many`, with as many steps as the payload says, and `/starts`, which has the same steps and returns
 * the start time of each.
 * `node bench/workflows/endpoints/library.ts <URL of the server> <token> [own]`.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { WorkflowContext } from '@upstash/workflow';
import express from 'express';
import { type Payload, type Result, STEP_NAMES, STEPS } from '../program.ts';
import { announce, reportEnd, reportHandled } from './reporting.ts';

/** The payload of `/many` and `/starts`. */
interface ManyPayload extends Payload {
  steps: number;
  /** The length of each step's result in characters. */
  resultLength: number;
}

const [serverUrl = '', token = '', library] = process.argv.slice(2);
const { serve } = (
  library === 'own' ? await import('../../../packages/workflow/src/node.ts') : await import('@upstash/workflow/express')
) as typeof import('@upstash/workflow/express');
const env = { QSTASH_URL: serverUrl, QSTASH_TOKEN: token };

/** Runs whose function has returned. A run ends once the library has reported the return to the server. */
const returned = new Map<string, number>();

async function three(context: WorkflowContext<Payload>): Promise<Result> {
  const { number } = context.requestPayload;
  let value = number;
  for (const [index, step] of STEPS.entries()) {
    const before = value;
    value = await context.run(STEP_NAMES[index] ?? '', () => step(before));
  }
  returned.set(context.workflowRunId, number);
  return { number, value };
}

async function many(context: WorkflowContext<ManyPayload>): Promise<Result> {
  const { number, steps, resultLength } = context.requestPayload;
  let value = 0;
  for (let step = 1; step <= steps; step += 1) {
    value += (await context.run(`step ${step}`, () => 'x'.repeat(resultLength))).length;
  }
  returned.set(context.workflowRunId, number);
  return { number, value };
}

/** Returns the start time of each step. */
async function starts(context: WorkflowContext<ManyPayload>): Promise<{ startsMs: number[] }> {
  const { number, steps } = context.requestPayload;
  const startsMs: number[] = [];
  for (let step = 1; step <= steps; step += 1) {
    startsMs.push(await context.run(`step ${step}`, () => performance.now()));
  }
  returned.set(context.workflowRunId, number);
  return { startsMs };
}

const app = express();
app.use((request: IncomingMessage, response: ServerResponse, next: () => void) => {
  response.on('finish', () => {
    reportHandled(Number(request.headers['content-length'] ?? 0));
    const runId = String(request.headers['upstash-workflow-runid']);
    const number = returned.get(runId);
    if (number === undefined || response.statusCode !== 200) return;
    returned.delete(runId);
    reportEnd(number);
  });
  next();
});
// The journals of long runs exceed the default limit.
app.use(express.json({ limit: '10mb' }));
app.use('/three', serve(three, { env }));
app.use('/many', serve(many, { env }));
app.use('/starts', serve(starts, { env }));
const server = createServer(app);
server.listen(0, '127.0.0.1', 4096, () => announce((server.address() as AddressInfo).port));
