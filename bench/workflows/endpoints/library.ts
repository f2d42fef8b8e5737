/**
 * The endpoint as its users write it: an Express app with a library, the official one or ours. Serves `/three`, the program of the
 * comparison, `/many`, as many steps as the payload says, and `/beginnings`, the same, which returns when each began.
 * `node bench/workflows/endpoints/library.ts <URL of the server> <token> [own]`.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { WorkflowContext } from '@upstash/workflow';
import express from 'express';
import { type Payload, type Result, STEP_NAMES, STEPS } from '../program.ts';
import { announce, reportEnd, reportHandled } from './reporting.ts';

/** Payload of `/many`. */
interface ManyPayload extends Payload {
  steps: number;
  /** Characters that each step returns. */
  resultLength: number;
}

const [serverUrl = '', token = '', library] = process.argv.slice(2);
const { serve } = (
  library === 'own' ? await import('../../../packages/workflow/src/node.ts') : await import('@upstash/workflow/express')
) as typeof import('@upstash/workflow/express');
const env = { QSTASH_URL: serverUrl, QSTASH_TOKEN: token };

/** Runs whose function has returned; they end once the library has told the server. */
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

/** Returns when each step began. */
async function beginnings(context: WorkflowContext<ManyPayload>): Promise<{ beginningsMs: number[] }> {
  const { number, steps } = context.requestPayload;
  const beginningsMs: number[] = [];
  for (let step = 1; step <= steps; step += 1) {
    beginningsMs.push(await context.run(`step ${step}`, () => performance.now()));
  }
  returned.set(context.workflowRunId, number);
  return { beginningsMs };
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
// Journals of long runs are larger than what it takes by itself.
app.use(express.json({ limit: '10mb' }));
app.use('/three', serve(three, { env }));
app.use('/many', serve(many, { env }));
app.use('/beginnings', serve(beginnings, { env }));
const server = createServer(app);
server.listen(0, '127.0.0.1', 4096, () => announce((server.address() as AddressInfo).port));
