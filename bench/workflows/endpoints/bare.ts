/**
 * An endpoint with a minimal implementation of the workflow protocol, on bare sockets. The endpoint costs next to
 * nothing, so that the measurement shows the server. The path selects the program of a run:
 * - `/three`: the program of the comparison
 * - `/within`: the program of the comparison within one call
 * - `/sleep?until=<Unix seconds>`: one sleep
 * - `/wait?event=<id>`: one wait
 *
 * `node bench/workflows/endpoints/bare.ts <URL of the server> <token>`.
 */
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { RequestSplitter } from '../../request-splitter.ts';
import { BareClient } from '../bare-client.ts';
import { type Payload, type Result, STEP_NAMES, STEPS } from '../program.ts';
import { stepHeaders } from '../step-headers.ts';
import { announce, reportEnd, reportHandled } from './reporting.ts';

interface DeliveredEntry {
  messageId: string;
  body: string;
  callType: string;
}

interface Delivery {
  runId: string;
  /** The URL of the workflow, from the trigger. */
  url: string;
  /** The checkpoint token of the call. */
  token: string;
  journal: DeliveredEntry[];
}

const OK = Buffer.from(
  'HTTP/1.1 200 OK\r\nUpstash-Workflow-Sdk-Version: 1\r\nUpstash-Workflow-Sdk: v1.0.0\r\nContent-Length: 0\r\n\r\n',
);
const RUN_ID = /\r\nupstash-workflow-runid: *(\S+)/i;
const CHECKPOINT_TOKEN = /\r\nupstash-workflow-checkpoint: *(\S+)/i;

const [serverUrl = '', token = ''] = process.argv.slice(2);
const client = new BareClient(serverUrl, token, 128);
let ownUrl = '';

/** Continues a run. Resolves to the response of the delivery, once the server has the result. */
async function continueRun(delivery: Delivery): Promise<Buffer> {
  const { pathname } = new URL(delivery.url);
  const { number } = JSON.parse(decoded(delivery.journal[0])) as Payload;
  if (pathname === '/within') return continueWithinCall(delivery, number);
  await publishNext(delivery, number);
  return OK;
}

/** Saves the result of each step by a checkpoint, and responds with the result of the run. */
async function continueWithinCall({ journal, token: first }: Delivery, number: number): Promise<Buffer> {
  let [value, token] = [number, first];
  for (const [index, step] of STEPS.entries()) {
    if (index < journal.length - 1) throw new Error('a run was delivered again');
    value = step(value);
    const saved = {
      stepId: index + 1,
      stepName: STEP_NAMES[index],
      stepType: 'Run',
      out: String(value),
      concurrent: 1,
    };
    const body = JSON.stringify({ done: [token], append: [{ step: saved }] });
    const response = JSON.parse((await client.send('POST', '/v2/waypost/checkpoints', body, {}, token)).toString());
    token = (response as { entries: [{ token: string }] }).entries[0].token;
  }
  const result = JSON.stringify({ number, value } satisfies Result);
  reportEnd(number);
  const head = `Upstash-Workflow-Sdk-Version: 1\r\nUpstash-Workflow-End: ${token}\r\nContent-Length: ${result.length}`;
  return Buffer.from(`HTTP/1.1 200 OK\r\n${head}\r\n\r\n${result}`);
}

async function publishNext(delivery: Delivery, number: number): Promise<void> {
  const { pathname, searchParams } = new URL(delivery.url);
  const done = delivery.journal.length - 1;
  if (pathname === '/three') return continueThree(delivery, number, done);
  if (done > 0) return endRun(delivery, { number });
  const event = searchParams.get('event');
  if (event !== null) return waitFor(delivery, event);
  return publishStep(
    delivery,
    { stepId: 1, stepName: 'sleep', stepType: 'SleepUntil', sleepUntil: Number(searchParams.get('until')) },
    { 'upstash-not-before': searchParams.get('until') ?? '' },
  );
}

async function continueThree(delivery: Delivery, number: number, done: number): Promise<void> {
  const latest = delivery.journal[done];
  const before = done === 0 ? number : Number((JSON.parse(decoded(latest)) as { out: string }).out);
  const step = STEPS[done];
  if (!step) return endRun(delivery, { number, value: before });
  await publishStep(delivery, {
    stepId: done + 1,
    stepName: STEP_NAMES[done] ?? '',
    stepType: 'Run',
    out: JSON.stringify(step(before)),
  });
}

async function publishStep(
  { runId, url }: Delivery,
  step: Record<string, unknown>,
  headers: Record<string, string> = {},
): Promise<void> {
  const item = {
    destination: url,
    headers: { ...stepHeaders(runId, url), ...headers },
    body: JSON.stringify({ ...step, concurrent: 1 }),
  };
  await client.send('POST', '/v2/batch', JSON.stringify([item]));
}

async function waitFor({ runId, url }: Delivery, event: string): Promise<void> {
  const headers = stepHeaders(runId, url);
  const body = {
    url,
    timeout: '1d',
    timeoutUrl: url,
    timeoutHeaders: Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, [value]])),
    step: { stepId: 1, stepName: 'wait', stepType: 'Wait', concurrent: 1 },
  };
  await client.send('POST', `/v2/wait/${event}`, JSON.stringify(body), headers);
}

async function endRun({ runId }: Delivery, result: Payload | Result): Promise<void> {
  await client.send('DELETE', `/v2/workflows/runs/${runId}?cancel=false`, JSON.stringify(result));
  reportEnd(result.number);
}

function decoded(entry: DeliveredEntry | undefined): string {
  return Buffer.from(entry?.body ?? '', 'base64').toString();
}

async function handle(socket: Socket, head: string, body: Buffer): Promise<void> {
  const runId = RUN_ID.exec(head)?.[1] ?? '';
  const token = CHECKPOINT_TOKEN.exec(head)?.[1] ?? '';
  const path = head.slice(head.indexOf(' ') + 1, head.indexOf(' HTTP/'));
  const journal = JSON.parse(body.toString()) as DeliveredEntry[];
  const response = await continueRun({ runId, url: ownUrl + path, journal, token });
  reportHandled(body.length);
  socket.write(response);
}

const server = createServer((socket) => {
  socket.setNoDelay(true);
  const splitter = new RequestSplitter((buffer, bodyStart, bodyEnd, headStart) => {
    handle(socket, buffer.toString('latin1', headStart, bodyStart), buffer.subarray(bodyStart, bodyEnd)).catch(
      (error: unknown) => {
        // The server retries. If the retry fails too, the number of ended runs shows the failure.
        process.stderr.write(`${String(error)}\n`);
        socket.destroy();
      },
    );
  });
  socket.on('data', (chunk: Buffer) => splitter.push(chunk));
  socket.on('error', () => socket.destroy());
});
server.listen(0, '127.0.0.1', 4096, () => {
  const { port } = server.address() as AddressInfo;
  ownUrl = `http://127.0.0.1:${port}`;
  announce(port);
});
