/** What does the body of an invocation say: the payload of the child, and which step of its parent waits (workflow.md 14.8)? */
import { Buffer } from 'node:buffer';
import type { Invocation } from '../engine/commands.ts';
import type { Millis } from '../engine/model.ts';
import { parseUrl } from '../protocol/destination.ts';
import { ApiError } from '../protocol/errors.ts';
import { itemRawHeaders, type Quotas, readPublishOptions } from '../protocol/options.ts';
import { readStep } from '../workflow/steps.ts';
import { parseJson } from './json-body.ts';

/** The payload is one of them, however large: the others are headers and the members of a step. */
const VALUES_MAX = 10_000;

export interface InvocationBody {
  payload: Uint8Array;
  invocation: Invocation;
}

/**
 * Reads it. Throws `ApiError` 422 for what is not as it must be: the sender is a workflow that runs, and would take 400 for
 * its end (workflow.md 4.7).
 */
export function readInvocation(body: Uint8Array, quotas: Quotas, nowMs: Millis): InvocationBody {
  try {
    return read(body, quotas, nowMs);
  } catch (error) {
    if (error instanceof ApiError && error.status === 400) throw new ApiError('unprocessable', error.message);
    throw error;
  }
}

function read(body: Uint8Array, quotas: Quotas, nowMs: Millis): InvocationBody {
  const { body: payload, headers, workflowRunId, workflowRunCreatedAt, workflowUrl, step } = membersOf(body);
  if (payload !== undefined && payload !== null && typeof payload !== 'string') throw invalid('body', 'a string');
  if (typeof workflowRunId !== 'string' || workflowRunId === '') throw invalid('workflowRunId', 'a string');
  if (typeof workflowUrl !== 'string') throw invalid('workflowUrl', 'a URL');
  const url = parseUrl(workflowUrl);
  if (typeof url === 'string') throw invalid('workflowUrl', `a URL (${url})`);
  const registered = Buffer.from(JSON.stringify(step) ?? '');
  const stepId = readStep(registered)?.stepId;
  if (stepId === undefined || stepId === 0) throw invalid('step', 'an object with a stepId');
  const input = { rawHeaders: itemRawHeaders(headers), queryConfig: [], tokenInQuery: true, proxyHeaders: [] };
  const { header, settings, run } = readPublishOptions(input, 'publish', quotas, nowMs);
  const invocation: Invocation = {
    runId: workflowRunId,
    step: registered,
    result: { url: workflowUrl, header, settings },
    features: run?.features ?? [],
  };
  // Libraries before 1.2 do not know it, and later ones may say 0.
  if (Number.isSafeInteger(workflowRunCreatedAt)) invocation.createdAtMs = workflowRunCreatedAt as number;
  return { payload: Buffer.from(payload ?? '', 'utf8'), invocation };
}

function membersOf(body: Uint8Array): Record<string, unknown> {
  const parsed = parseJson(body, VALUES_MAX);
  if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed)) throw invalid('body', 'an object');
  return parsed as Record<string, unknown>;
}

function invalid(member: string, needed: string): ApiError {
  return new ApiError('unprocessable', `invalid request body: ${member}: ${needed} is needed`);
}
