/** What run is a message for, and what is it to be there (contract W 4.2)? */
import type { Given, Scope } from '../config-scopes.ts';
import { prefixOf } from '../dialect.ts';
import { invalidHeader, runIdMissing } from '../errors.ts';
import { isHeaderValue, UNSENDABLE_VALUE } from '../headers.ts';
import { booleanOf, wordOf } from '../option-values.ts';
import type { Dialect, RunAppend, RunStart, RunWish, WorkflowFeature } from '../settings.ts';
import { FEATURES_OF_TODAY, parseFeatures } from './generations.ts';

/** As long as any id that somebody makes of a URL or a key of theirs: it comes back with each delivery. */
const RUN_ID_LENGTH_MAX = 1_024;

/** Reads what a message with `Workflow-Init` says of its run. Throws `ApiError` 400. */
export function readRunWish(scope: Scope, dialect: Dialect): RunWish {
  return booleanOf(scope.options.get('workflow-init')) ? readStart(scope) : readAppend(scope, dialect);
}

/**
 * Reads the same of a request to trigger a workflow, which need not say that it is one. What the server knows of the
 * protocol counts, and not what comes along (contract W 5.2), unless a library makes itself known with it.
 */
export function readTriggerWish(scope: Scope): RunStart {
  const start = readStart(scope);
  if (start.isBySdk) return { ...start, features: featuresOf(scope) ?? [...FEATURES_OF_TODAY] };
  return { ...start, features: [...FEATURES_OF_TODAY], isInvoke: false, isRest: true };
}

/** `undefined` where nothing is said of them, which older libraries mean by saying nothing. */
export function featuresOf({ options }: Scope): WorkflowFeature[] | undefined {
  const given = options.get('feature-set');
  return given && parseFeatures(given.value);
}

function readStart(scope: Scope): RunStart {
  const { options } = scope;
  const isBySdk = booleanOf(options.get('workflow-trigger-by-sdk'));
  const start: RunStart = {
    kind: 'start',
    features: featuresOf(scope) ?? [],
    isInvoke: booleanOf(options.get('workflow-invoke')),
    isBySdk,
    // The library that says who it is may repeat what it was asked with.
    isUnknownSdk: !isBySdk && asksForSdk(scope),
    isRest: false,
  };
  const runId = options.get('workflow-runid');
  if (runId !== undefined) start.runId = runIdOf(runId);
  return start;
}

/** Whether the first delivery is to find out which library serves the URL. The value means nothing (contract W 5.3). */
function asksForSdk({ options, forwarded }: Scope): boolean {
  return (
    options.has('workflow-unknown-sdk') ||
    forwarded.has('Upstash-Workflow-Unknown-Sdk') ||
    forwarded.has('Waypost-Workflow-Unknown-Sdk')
  );
}

function readAppend(scope: Scope, dialect: Dialect): RunAppend {
  const { options } = scope;
  const runId = options.get('workflow-runid');
  if (runId === undefined) throw runIdMissing();
  const callType = wordOf(options.get('workflow-calltype'), CALL_TYPES) ?? 'step';
  const append: RunAppend = {
    kind: 'append',
    runId: runIdOf(runId),
    callType: callType === 'tocallback' ? 'toCallback' : callType === 'stepconfig' ? 'stepConfig' : 'step',
    features: featuresOf(scope) ?? [],
  };
  // Libraries send 0 or no number when they have not been told it.
  const createdAtMs = Number(options.get('workflow-createdat')?.value);
  if (Number.isSafeInteger(createdAtMs) && createdAtMs > 0) append.createdAtMs = createdAtMs;
  if (append.callType === 'toCallback' && options.get('callback') === undefined) {
    throw invalidHeader(`${prefixOf(dialect)}-Callback`, 'a call needs the URL that its result goes to');
  }
  return append;
}

const CALL_TYPES = ['step', 'tocallback', 'stepconfig'] as const;

/** Verbatim, whatever it looks like: it comes back with each delivery, so HTTP must be able to carry it. */
function runIdOf({ value, header }: Given): string {
  if (!isHeaderValue(value)) throw invalidHeader(header, UNSENDABLE_VALUE);
  if (value.length > RUN_ID_LENGTH_MAX) throw invalidHeader(header, `longer than ${RUN_ID_LENGTH_MAX} characters`);
  return value;
}
