/** Sends the requests of an endpoint that saves results of steps within one call (contract K). Nothing here reacts by itself. */
import { decodeCheckpointClaim } from '../../../src/protocol/workflow/checkpoints.ts';
import { eventually } from '../../support/eventually.ts';
import type { Reply } from './endpoint.ts';
import type { Answer, Json, Subject } from './subject.ts';
import { answered, type Delivery, type Run, start, type Trigger } from './workflow.ts';

/** A delivery that is not answered yet. */
export interface Call {
  run: Run;
  delivery: Delivery;
  token: string;
  /** Answers the oldest request to the workflow that has no answer. */
  answer: (reply?: Reply) => void;
}

/** Starts a run whose endpoint answers nothing before it is told to, and waits for its first delivery. */
export async function called(server: Subject, trigger: Trigger = {}): Promise<Call> {
  const path = trigger.path ?? server.endpoint.newPath();
  const answer = server.endpoint.hold(path);
  const run = await start(server, { ...trigger, path });
  return callOf(run, 1, answer);
}

/** The nth delivery of the run. */
export async function callOf(run: Run, nth: number, answer: Call['answer']): Promise<Call> {
  const delivery = await run.delivery(nth);
  return { run, delivery, token: tokenOf(delivery), answer };
}

export function tokenOf({ headers }: Pick<Delivery, 'headers'>): string {
  return String(headers['upstash-workflow-checkpoint'] ?? headers['waypost-workflow-checkpoint'] ?? '');
}

/** Sends a checkpoint with the first of its tokens. */
export function send(server: Subject, done: string[], append: Json[] = []): Promise<Answer> {
  return sendText(server, done[0] ?? '', JSON.stringify({ done, append }));
}

/** To the worker that does not make the call, where there is one. */
export function sendText(server: Subject, token: string, body: string): Promise<Answer> {
  return server.ask('POST', '/v2/waypost/checkpoints', { token, body, worker: otherWorker(server, token) });
}

function otherWorker({ workers }: Subject, token: string): number {
  return workers - 1 - (decodeCheckpointClaim(token)?.worker ?? 0);
}

/** As `send`, for what must work: answers the entries. */
export async function save(server: Subject, done: string[], append: Json[] = []): Promise<Json[]> {
  const { status, json, text } = await send(server, done, append);
  if (status !== 200) throw new Error(`a checkpoint was answered ${status} ${text}`);
  return json.entries;
}

/** What a call says that has nothing under way. */
export interface Staying {
  done?: string[];
  append?: Json[];
  failed?: { token: string; status: number; headers?: Record<string, string>; body?: string }[];
  lingerMs?: number;
}

/** Has the call stay; resolves to the body of the answer, whenever it comes. */
export async function stay(server: Subject, given: Staying): Promise<Json> {
  const staying = { lingerMs: 5_000, ...given };
  const token = given.done?.[0] ?? given.failed?.[0]?.token ?? '';
  const { status, json, text } = await sendText(server, token, JSON.stringify(staying));
  if (status !== 200) throw new Error(`a checkpoint was answered ${status} ${text}`);
  return json;
}

/** Resolves once a call of the run stays: its checkpoint is saved, and what came with that is dispatched. */
export async function stays(run: Run, messageId: string): Promise<void> {
  await saved(run, messageId);
  await run.server.quiet();
}

/** Resolves once the attempt with the message has ended. */
export async function saved(run: Run, messageId: string): Promise<void> {
  await eventually(`the end of ${messageId}`, async () => {
    const events = await run.events();
    return events.some(
      ({ stepInfo, state }) => stepInfo?.messageId === messageId && ['DELIVERED', 'RETRY'].includes(state),
    );
  });
}

/** As `sendText`, over a connection of its own; resolves to the body of the answer. */
export async function sendAlone(server: Subject, token: string, body: string, signal?: AbortSignal): Promise<Json> {
  const headers = { authorization: `Bearer ${token}` };
  const request = { method: 'POST', headers, body, ...(signal && { signal }) };
  return (await fetch(`${server.urlOf(otherWorker(server, token))}/v2/waypost/checkpoints`, request)).json();
}

/** The same with the last step, which no checkpoint has kept. */
export function endWith(token: string, step: Json, result = ''): Reply {
  const text = JSON.stringify(step);
  const headers = { 'Upstash-Workflow-End': token, 'Upstash-Workflow-End-Step': String(Buffer.byteLength(text)) };
  return answered(200, text + result, headers);
}

/** How an endpoint answers whose run has returned. */
export function end(token: string, result = ''): Reply {
  return answered(200, result, { 'Upstash-Workflow-End': token });
}
