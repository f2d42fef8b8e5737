/** Reads the request of a workflow that invokes another workflow (contract W 14.8). */
import { Buffer } from 'node:buffer';
import { invalidBody } from '../errors.ts';
import { isObject } from '../json-objects.ts';
import { itemRawHeaders, type Quotas } from '../options/options.ts';
import type { Dialect, ResultMessage } from '../options/settings.ts';
import { parseUrl, withoutFragment } from '../urls/destination.ts';
import { readResultMessage } from './result-message.ts';
import { toRunError } from './run-errors.ts';

export interface InvocationRequest {
  /** The payload of the invoked run. */
  payload: Uint8Array;
  /** The invoking run, which waits for the result. */
  runId: string;
  createdAtMs?: number;
  /** The step of the invoking run, as it was sent. */
  step: Uint8Array;
  result: ResultMessage;
}

/**
 * Reads the parsed body of an invocation; `dialect`: the dialect of the request. Throws `ApiError` 422 that names the
 * invalid member, and 412 if an option of the result exceeds a quota.
 */
export function readInvocation(body: unknown, dialect: Dialect, quotas: Quotas, nowMs: number): InvocationRequest {
  try {
    return read(body, dialect, quotas, nowMs);
  } catch (error) {
    throw toRunError(error);
  }
}

function read(body: unknown, dialect: Dialect, quotas: Quotas, nowMs: number): InvocationRequest {
  if (!isObject(body)) throw invalidBody('an object is needed');
  const { body: payload = '', headers, workflowRunId, workflowRunCreatedAt, workflowUrl, step } = body;
  if (payload !== null && typeof payload !== 'string') throw invalidBody('body must be a string');
  if (typeof workflowRunId !== 'string' || workflowRunId === '') throw invalidBody('workflowRunId must be a string');
  if (typeof workflowUrl !== 'string') throw invalidBody('workflowUrl must be a string');
  if (!isObject(step) || !isStepId(step['stepId']))
    throw invalidBody('step must be an object with a stepId of at least 1');
  const url = withoutFragment(workflowUrl);
  const parsed = parseUrl(url);
  if (typeof parsed === 'string') throw invalidBody(`workflowUrl: ${parsed}`);
  const invocation: InvocationRequest = {
    payload: Buffer.from(payload ?? '', 'utf8'),
    runId: workflowRunId,
    step: Buffer.from(JSON.stringify(step), 'utf8'),
    result: readResultMessage({ url, rawHeaders: itemRawHeaders(headers), dialect }, quotas, nowMs),
  };
  // Libraries before 1.2 send no creation time, and libraries that do not know the time send 0.
  if (Number.isSafeInteger(workflowRunCreatedAt) && Number(workflowRunCreatedAt) > 0) {
    invocation.createdAtMs = Number(workflowRunCreatedAt);
  }
  return invocation;
}

function isStepId(value: unknown): boolean {
  return Number.isSafeInteger(value) && Number(value) > 0;
}
