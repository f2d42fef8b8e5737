/** Reads which run a message is for, and its role there (contract W 4.2). */

import { invalidHeader, runIdMissing } from '../errors.ts';
import { OPTIONS } from '../options/config-options.ts';
import type { Scope } from '../options/config-scopes.ts';
import { prefixOf } from '../options/dialect.ts';
import { newRunIdOf } from '../options/option-values.ts';
import type { Dialect, RunAppend, RunRequest, RunStart } from '../options/settings.ts';
import { FEATURES_OF_TODAY } from './generations.ts';

/** Reads the run of a message with `Workflow-Init`. Throws `ApiError` 400. */
export function readRunRequest(scope: Scope, dialect: Dialect): RunRequest {
  return OPTIONS.workflowInit.of(scope) ? readStart(scope) : readAppend(scope, dialect);
}

/**
 * Reads the run of a request to trigger a workflow, which need not have `Workflow-Init`. The server itself sets the other
 * headers of the protocol, and ignores those of the client (contract W 5.2), unless a library identifies itself with them.
 */
export function readTriggerRequest(scope: Scope): RunStart {
  const start = readStart(scope);
  if (start.isBySdk) return { ...start, features: OPTIONS.featureSet.of(scope) ?? [...FEATURES_OF_TODAY] };
  return { ...start, features: [...FEATURES_OF_TODAY], isInvoke: false, isRest: true };
}

function readStart(scope: Scope): RunStart {
  const isBySdk = OPTIONS.workflowTriggerBySdk.of(scope);
  const start: RunStart = {
    kind: 'start',
    // Older libraries send no features, and have none.
    features: OPTIONS.featureSet.of(scope) ?? [],
    isInvoke: OPTIONS.workflowInvoke.of(scope),
    isBySdk,
    // A library that identifies itself may send back the header of the delivery that asked it to.
    isUnknownSdk: !isBySdk && asksForSdk(scope),
    isRest: false,
  };
  // A library that identifies itself names a run that has already started, whose id may break today's rules.
  const runId = isBySdk ? OPTIONS.workflowRunId.of(scope) : newRunIdOf(OPTIONS.workflowRunId.given(scope));
  if (runId !== undefined) start.runId = runId;
  return start;
}

/** Whether the first delivery asks which library serves the URL (contract W 5.3). */
function asksForSdk(scope: Scope): boolean {
  const { forwarded } = scope;
  return (
    OPTIONS.workflowUnknownSdk.of(scope) ||
    forwarded.has('Upstash-Workflow-Unknown-Sdk') ||
    forwarded.has('Waypost-Workflow-Unknown-Sdk')
  );
}

function readAppend(scope: Scope, dialect: Dialect): RunAppend {
  const runId = OPTIONS.workflowRunId.of(scope);
  if (runId === undefined) throw runIdMissing();
  const callType = OPTIONS.workflowCallType.of(scope) ?? 'step';
  const append: RunAppend = { kind: 'append', runId, callType, features: OPTIONS.featureSet.of(scope) ?? [] };
  const createdAtMs = OPTIONS.workflowCreatedAt.of(scope);
  if (createdAtMs !== undefined) append.createdAtMs = createdAtMs;
  if (callType === 'toCallback' && OPTIONS.callback.given(scope) === undefined) {
    throw invalidHeader(`${prefixOf(dialect)}-Callback`, 'a call needs the URL that its result goes to');
  }
  return append;
}
