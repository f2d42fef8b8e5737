/** Reads the run that a message belongs to, and the role of the message in this run (contract W 4.2). */

import { invalidHeader, runIdMissing } from '../errors.ts';
import { OPTIONS } from '../options/config-options.ts';
import type { Scope } from '../options/config-scopes.ts';
import { prefixOf } from '../options/dialect.ts';
import { newRunIdOf } from '../options/option-values.ts';
import type { Dialect, RunAppend, RunRequest, RunStart } from '../options/settings.ts';
import { CURRENT_FEATURES } from './generations.ts';

/** Reads the run of a message with `Workflow-Init`. Throws `ApiError` 400. */
export function readRunRequest(scope: Scope, dialect: Dialect): RunRequest {
  return OPTIONS.workflowInit.read(scope) ? readStart(scope) : readAppend(scope, dialect);
}

/**
 * Reads the run of a request to trigger a workflow, which need not have `Workflow-Init`. The server itself sets the other
 * headers of the protocol, and ignores the client's (contract W 5.2), unless a library identifies itself with such
 * headers.
 */
export function readTriggerRequest(scope: Scope): RunStart {
  const start = readStart(scope);
  if (start.isBySdk) return { ...start, features: OPTIONS.featureSet.read(scope) ?? [...CURRENT_FEATURES] };
  return { ...start, features: [...CURRENT_FEATURES], isInvoke: false, isRest: true };
}

function readStart(scope: Scope): RunStart {
  const isBySdk = OPTIONS.workflowTriggerBySdk.read(scope);
  const start: RunStart = {
    kind: 'start',
    // Older libraries send no features, and have none.
    features: OPTIONS.featureSet.read(scope) ?? [],
    isInvoke: OPTIONS.workflowInvoke.read(scope),
    isBySdk,
    // A library that identifies itself may send back the header of the delivery that asked for its identity.
    isUnknownSdk: !isBySdk && asksForSdk(scope),
    isRest: false,
  };
  // A library that identifies itself names a run that has already started, whose id may break today's rules.
  const runId = isBySdk ? OPTIONS.workflowRunId.read(scope) : newRunIdOf(OPTIONS.workflowRunId.raw(scope));
  if (runId !== undefined) start.runId = runId;
  return start;
}

/** Whether the first delivery asks which library serves the URL (contract W 5.3). */
function asksForSdk(scope: Scope): boolean {
  const { forwarded } = scope;
  return (
    OPTIONS.workflowUnknownSdk.read(scope) ||
    forwarded.has('Upstash-Workflow-Unknown-Sdk') ||
    forwarded.has('Waypost-Workflow-Unknown-Sdk')
  );
}

function readAppend(scope: Scope, dialect: Dialect): RunAppend {
  const runId = OPTIONS.workflowRunId.read(scope);
  if (runId === undefined) throw runIdMissing();
  const callType = OPTIONS.workflowCallType.read(scope) ?? 'step';
  const append: RunAppend = { kind: 'append', runId, callType, features: OPTIONS.featureSet.read(scope) ?? [] };
  const createdAtMs = OPTIONS.workflowCreatedAt.read(scope);
  if (createdAtMs !== undefined) append.createdAtMs = createdAtMs;
  if (callType === 'toCallback' && OPTIONS.callback.raw(scope) === undefined) {
    throw invalidHeader(`${prefixOf(dialect)}-Callback`, 'a call needs the URL that receives its result');
  }
  return append;
}
