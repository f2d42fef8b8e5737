/** Sends requests of an endpoint that saves step results within one call (contract K). No request is automatic. */
import { decodeCheckpointClaim } from '../../../src/protocol/workflow/checkpoints.ts';
import { eventually } from '../../support/eventually.ts';
import type { Reply } from './endpoint.ts';
import type { ApiResponse, Json, Subject } from './subject.ts';
import { type Delivery, type Run, replyOf, start, type Trigger } from './workflow.ts';

/** A delivery that has no response yet. */
export interface Call {
  run: Run;
  delivery: Delivery;
  token: string;
  /** Responds to the oldest open request to the workflow. */
  respond: (reply?: Reply) => void;
}

/** Starts a run whose endpoint does not respond before `respond` is called, and waits for the first delivery. */
export async function called(server: Subject, trigger: Trigger = {}): Promise<Call> {
  const path = trigger.path ?? server.endpoint.newPath();
  const respond = server.endpoint.hold(path);
  const run = await start(server, { ...trigger, path });
  return callOf(run, 1, respond);
}

/** Returns the call with the nth delivery of the run. */
export async function callOf(run: Run, nth: number, respond: Call['respond']): Promise<Call> {
  const delivery = await run.delivery(nth);
  return { run, delivery, token: tokenOf(delivery), respond };
}

export function tokenOf({ headers }: Pick<Delivery, 'headers'>): string {
  return String(headers['upstash-workflow-checkpoint'] ?? headers['waypost-workflow-checkpoint'] ?? '');
}

/** Sends a checkpoint. The first token of `done` authorizes the request. */
export function send(server: Subject, done: string[], append: Json[] = []): Promise<ApiResponse> {
  return sendText(server, done[0] ?? '', JSON.stringify({ done, append }));
}

/** Sends the text of a checkpoint; if there are two workers, to the worker that does not make the call. */
export function sendText(server: Subject, token: string, body: string): Promise<ApiResponse> {
  return server.ask('POST', '/v2/waypost/checkpoints', { token, body, worker: otherWorker(server, token) });
}

function otherWorker({ workers }: Subject, token: string): number {
  return workers - 1 - (decodeCheckpointClaim(token)?.worker ?? 0);
}

/** Like `send`, for a checkpoint that must succeed. Returns the entries. */
export async function save(server: Subject, done: string[], append: Json[] = []): Promise<Json[]> {
  const { status, json, text } = await send(server, done, append);
  if (status !== 200) throw new Error(`a checkpoint returned ${status} ${text}`);
  return json.entries;
}

/** The checkpoint of a call that has no more work and becomes an idle call. */
export interface Staying {
  done?: string[];
  append?: Json[];
  failed?: { token: string; status: number; headers?: Record<string, string>; body?: string }[];
  lingerMs?: number;
}

/** Keeps the call open as an idle call; resolves to the body of the response. */
export async function stay(server: Subject, given: Staying): Promise<Json> {
  const staying = { lingerMs: 5_000, ...given };
  const token = given.done?.[0] ?? given.failed?.[0]?.token ?? '';
  const { status, json, text } = await sendText(server, token, JSON.stringify(staying));
  if (status !== 200) throw new Error(`a checkpoint returned ${status} ${text}`);
  return json;
}

/** Resolves once the checkpoint of an idle call is saved and messages that are now due have started. */
export async function stays(run: Run, messageId: string): Promise<void> {
  await saved(run, messageId);
  await run.server.quiet();
}

/** Resolves once the attempt of the message has ended. */
export async function saved(run: Run, messageId: string): Promise<void> {
  await eventually(`the end of ${messageId}`, async () => {
    const events = await run.events();
    return events.some(
      ({ stepInfo, state }) => stepInfo?.messageId === messageId && ['DELIVERED', 'RETRY'].includes(state),
    );
  });
}

/** Like `sendText`, over a separate connection. Resolves to the body of the response. */
export async function sendAlone(server: Subject, token: string, body: string, signal?: AbortSignal): Promise<Json> {
  const headers = { authorization: `Bearer ${token}` };
  const request = { method: 'POST', headers, body, ...(signal && { signal }) };
  return (await fetch(`${server.urlOf(otherWorker(server, token))}/v2/waypost/checkpoints`, request)).json();
}

/** Like `end`, with the result of the last step, which no checkpoint has saved. */
export function endWith(token: string, step: Json, result = ''): Reply {
  const text = JSON.stringify(step);
  const headers = { 'Upstash-Workflow-End': token, 'Upstash-Workflow-End-Step': String(Buffer.byteLength(text)) };
  return replyOf(200, text + result, headers);
}

/** The response of an endpoint whose run has returned. */
export function end(token: string, result = ''): Reply {
  return replyOf(200, result, { 'Upstash-Workflow-End': token });
}
