/**
 * The endpoint as its users write it: a library behind a plain `node:http` server, the official one or ours. Serves `/three`, the program
 * of the comparison, and `/many`, as many steps as the payload says.
 * `node bench/workflows/endpoints/library.ts <URL of the server> <token> [own]`.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import type { WorkflowContext } from '@upstash/workflow';
import { type Payload, type Result, STEP_NAMES, STEPS } from '../program.ts';
import { announce, reportEnd, reportHandled } from './reporting.ts';

/** Payload of `/many`. */
export interface ManyPayload extends Payload {
  steps: number;
  /** Characters that each step returns. */
  resultLength: number;
}

const [serverUrl = '', token = '', library] = process.argv.slice(2);
const { serve } = (
  library === 'own' ? await import('../../../packages/workflow/src/index.ts') : await import('@upstash/workflow')
) as typeof import('@upstash/workflow');
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

const handlers = new Map([
  ['/three', serve(three, { env }).handler],
  ['/many', serve(many, { env }).handler],
]);

async function answer(from: IncomingMessage, to: ServerResponse): Promise<void> {
  const handler = handlers.get(from.url ?? '');
  const body = await buffer(from);
  if (!handler) {
    to.writeHead(404).end();
    return;
  }
  const request = new Request(new URL(from.url ?? '', `http://${from.headers.host}`), {
    method: from.method ?? 'POST',
    headers: from.headers as Record<string, string>,
    body: new Uint8Array(body),
  });
  const response = await handler(request);
  reportHandled(body.length);
  const runId = String(from.headers['upstash-workflow-runid']);
  const number = returned.get(runId);
  if (number !== undefined && response.status === 200) {
    returned.delete(runId);
    reportEnd(number);
  }
  to.writeHead(response.status, Object.fromEntries(response.headers)).end(Buffer.from(await response.arrayBuffer()));
}

const server = createServer((from, to) => {
  answer(from, to).catch((error: unknown) => {
    process.stderr.write(`${String(error)}\n`);
    to.writeHead(500).end();
  });
});
server.listen(0, '127.0.0.1', 4096, () => announce((server.address() as AddressInfo).port));
