/**
 * Converts runs, their steps and events to their JSON objects (contract W 18, 20), with the redactions of each run
 * (contract W 16.3).
 */
import { STATUS_CODES } from 'node:http';
import { Type } from '@sinclair/typebox';
import { respondedWith } from '../../engine/messages/decide.ts';
import { UNFINISHED_REASONS } from '../../engine/messages/explain.ts';
import { LOG_STATES, type LogDetail, RUN_LOG_STATES } from '../../engine/model.ts';
import type { RunExplanation } from '../../engine/runs/logs/explain.ts';
import type { RunEvent } from '../../engine/runs/logs/log-store.ts';
import { bodyText } from '../../protocol/bodies.ts';
import type { AttemptSettings, HeaderMap, Redaction } from '../../protocol/options/settings.ts';
import { mergeRedactions, redactedText, redactHeaderMap } from '../../protocol/redaction.ts';
import { isSuccess } from '../../protocol/responses.ts';
import { maskPassword } from '../../protocol/urls/masked-url.ts';
import type { Failure, FailureFunction, KeptResponse, LoggedRun } from '../../workflow/history.ts';
import type { RunLink } from '../../workflow/model.ts';
import type { NextStep, RunLog } from '../../workflow/run-log.ts';
import { type StepInfo, stepInfoOf } from '../../workflow/step-info.ts';
import type { StepSummary } from '../../workflow/step-summaries.ts';
import { FAILURE_CALLBACK_STATES, labelView, nonEmpty } from '../messages/views.ts';
import {
  AtLeastOne,
  CellName,
  Count,
  exactly,
  HeaderMapSchema,
  LabelsSchema,
  MessageIdSchema,
  Ms,
  shapeOf,
  Text,
  type View,
} from '../schemas.ts';

/** The default retry delays (contract M 8.2) as an expression, for messages without a delay expression. */
const DEFAULT_RETRY_DELAY = 'min(86400000, floor(exp(2.5 * (1 + retried))) * 1000)';

/** Limits on what a view shows: the redaction, and the bytes of each body. */
interface ViewLimits {
  redact: Redaction | undefined;
  /** The maximum length of each body; `undefined` for whole bodies. */
  bodyBytesMax: number | undefined;
}

/** Adds the redaction of a message, which may hide more than the redaction of its run. */
function withRedaction(shown: ViewLimits, own: Redaction | undefined): ViewLimits {
  return own ? { ...shown, redact: mergeRedactions(shown.redact, own) } : shown;
}

const oneOf = <Name extends string>(...names: Name[]) => Type.Union(names.map((name) => Type.Literal(name)));
const optional = Type.Optional;
/** Headers of a response, which may be empty. */
const ResponseHeaders = Type.Record(Type.String(), Type.Array(Type.String()));

/** The members of contract W 20. Zero and empty values are omitted, except the number of retries. */
const STEP_INFO = shapeOf<[info: StepInfo, shown: ViewLimits]>()(
  {
    stepId: [optional(AtLeastOne), ({ stepId }) => stepId || undefined],
    stepName: [optional(Type.String()), ({ stepName }) => stepName],
    stepType: [
      optional(Type.String({ description: 'such as Run, SleepFor or Call; Initial for the payload' })),
      ({ stepType }) => stepType,
    ],
    callType: [oneOf('step', 'toCallback', 'fromCallback', 'failureCall', 'stepConfig'), ({ callType }) => callType],
    messageId: [MessageIdSchema, ({ messageId }) => messageId],
    concurrent: [AtLeastOne, ({ concurrent }) => concurrent],
    targetStep: [optional(AtLeastOne), ({ targetStep }) => targetStep],
    createdAt: [Ms, ({ createdAtMs }) => createdAtMs],
    out: [optional(Text), ({ out }, shown) => bodyView(out, shown)],
    headers: [optional(HeaderMapSchema), ({ header }, shown) => headerView(header, shown)],
    retries: [Count, ({ maxRetries }) => maxRetries],
    retryDelay: [optional(Text), retryDelayOf],
    sleepFor: [optional(Type.Integer({ minimum: 0, description: 'milliseconds' })), ({ sleepForMs }) => sleepForMs],
    sleepUntil: [optional(Ms), ({ sleepUntilMs }) => sleepUntilMs],
    callUrl: [optional(Text), ({ call }) => call?.url && maskPassword(call.url)],
    callMethod: [optional(Text), ({ call }) => call?.method],
    callHeaders: [optional(HeaderMapSchema), ({ call }, shown) => call?.header && headerView(call.header, shown)],
    callBody: [optional(Text), ({ call }, shown) => bodyView(call?.body, shown)],
    callResponseStatus: [optional(Count), ({ call }) => call?.response?.status],
    callResponseBody: [optional(Text), ({ call }, shown) => bodyView(call?.response?.body, shown)],
    callResponseHeaders: [
      optional(ResponseHeaders),
      ({ call }, shown) => call?.response && headerView(call.response.header, shown),
    ],
    waitEventId: [optional(Text), ({ wait }) => wait?.eventId],
    waitTimeoutDuration: [optional(Text), ({ wait }) => wait?.timeout],
    waitTimeoutDeadline: [optional(Ms), ({ wait }) => wait?.deadlineMs],
    waitTimeout: [optional(Type.Literal(true)), ({ wait }) => wait?.isTimeout || undefined],
    invokedWorkflowRunId: [optional(Text), ({ invoked }) => invoked?.runId],
    invokedWorkflowUrl: [optional(Text), ({ invoked }) => invoked && maskPassword(invoked.url)],
    invokedWorkflowCreatedAt: [optional(Ms), ({ invoked }) => invoked?.createdAtMs],
    // The invoked run may redact more than the invoking run.
    invokedWorkflowRunBody: [
      optional(Text),
      ({ invoked }, shown) => bodyView(invoked?.first?.body, withRedaction(shown, invoked?.first?.settings.redact)),
    ],
    invokedWorkflowRunHeaders: [
      optional(HeaderMapSchema),
      ({ invoked }, shown) => {
        const first = invoked?.first;
        return first && headerView(first.header, withRedaction(shown, first.settings.redact));
      },
    ],
  },
  'StepInfo',
);

function stepInfoView(info: StepInfo, runShown: ViewLimits): View {
  return STEP_INFO.view(info, withRedaction(runShown, info.redact));
}

function retryDelayOf({ maxRetries, retryDelayExpression }: AttemptSettings): string | undefined {
  return retryDelayExpression ?? (maxRetries > 0 ? DEFAULT_RETRY_DELAY : undefined);
}

/** Members are present even when they are empty, since clients read them without a check. */
const STEP_ERROR = shapeOf<[failure: Failure, shown: ViewLimits]>()(
  {
    error: [Type.String(), ({ error, response }) => errorText(error, response)],
    body: [Type.String(), ({ response }, shown) => bodyView(response?.body, shown) ?? ''],
    headers: [ResponseHeaders, ({ response }, { redact }) => redactHeaderMap(response?.header ?? {}, redact)],
    status: [optional(Count), ({ response }) => response?.status],
    time: [Ms, ({ atMs }) => atMs],
  },
  'StepError',
);

const ErrorsSchema = optional(Type.Array(STEP_ERROR.schema, { minItems: 1 }));

function errorsView(failures: readonly Failure[], shown: ViewLimits): View[] | undefined {
  return failures.length === 0 ? undefined : failures.map((failure) => STEP_ERROR.view(failure, shown));
}

/**
 * Returns `<status> <reason>`, as clients expect, followed by the text of the error, if any. For a success status, and
 * for a response about changed code, returns only the text of the error.
 */
function errorText(error: string | undefined, response: Pick<KeptResponse, 'status'> | undefined): string | undefined {
  if (!response || isSuccess(response.status)) return error;
  const { status } = response;
  if (error !== undefined && !error.startsWith(respondedWith(status))) return error;
  const known = `${status} ${STATUS_CODES[status] ?? ''}`.trimEnd();
  return `${known}${error?.slice(respondedWith(status).length) ?? ''}`;
}

const StepState = oneOf('STEP_PROGRESS', 'STEP_RETRY', 'STEP_PARKED', 'STEP_SUCCESS', 'STEP_FAILED', 'STEP_CANCELED');

/** The members of a step in addition to its `STEP_INFO`. */
const STEP_STATE = shapeOf<[record: StepSummary, shown: ViewLimits]>()({
  state: [StepState, ({ state }) => state],
  errors: [ErrorsSchema, ({ failures }, shown) => errorsView(failures, shown)],
  nextDeliveryTime: [optional(Ms), ({ nextDeliveryAtMs }) => nextDeliveryAtMs],
});

const StepSchema = exactly({ ...STEP_INFO.schema.properties, ...STEP_STATE.schema.properties }, 'Step');

function stepView(record: StepSummary, runShown: ViewLimits): View {
  const shown = withRedaction(runShown, record.info.redact);
  return { ...STEP_INFO.view(record.info, shown), ...STEP_STATE.view(record, shown) };
}

const NEXT_STEP = shapeOf<[step: NextStep, runShown: ViewLimits]>()(
  {
    messageId: [MessageIdSchema, ({ message }) => message.id],
    stepName: [optional(Type.String()), ({ stepName }) => stepName],
    state: [StepState, ({ state }) => state],
    retries: [Count, ({ message }) => message.settings.maxRetries],
    retryDelay: [optional(Text), ({ message }) => retryDelayOf(message.settings)],
    errors: [
      ErrorsSchema,
      ({ failures, message }, shown) => errorsView(failures, withRedaction(shown, message.settings.redact)),
    ],
    nextDeliveryTime: [optional(Ms), ({ nextDeliveryAtMs }) => nextDeliveryAtMs],
  },
  'NextStep',
);

/**
 * The failed step has the whole response. A failure function repeats the response, truncated to this length, so that no
 * long body is sent twice.
 */
const FAIL_RESPONSE_BYTES_MAX = 64 * 1024;

const FAILURE_FUNCTION = shapeOf<[failureFunction: FailureFunction, log: RunLog, shown: ViewLimits]>()(
  {
    messageId: [MessageIdSchema, ({ message }) => message.id],
    url: [Text, ({ message }) => maskPassword(message.url)],
    state: [
      oneOf('CALLBACK_INPROGRESS', 'CALLBACK_SUCCESS', 'CALLBACK_FAIL', 'CALLBACK_CANCELED'),
      ({ state }) => FAILURE_CALLBACK_STATES[state],
    ],
    failStatus: [Count, (_, { failure }) => failure?.response?.status ?? 0],
    failResponse: [
      Type.String(),
      (_, { failure }, shown) => bodyView(failure?.response?.body, withBytesMax(FAIL_RESPONSE_BYTES_MAX, shown)) ?? '',
    ],
    failHeaders: [
      ResponseHeaders,
      (_, { failure }, { redact }) => redactHeaderMap(failure?.response?.header ?? {}, redact),
    ],
    dlqId: [optional(Text), (_, { run }) => run.dlqId],
    maxRetries: [Count, ({ message }) => message.settings.maxRetries],
    responseStatus: [optional(Count), (failureFunction) => lastResponseOf(failureFunction)?.status],
    responseBody: [
      optional(Text),
      (failureFunction, _, shown) => bodyView(lastResponseOf(failureFunction)?.body, shown),
    ],
    responseHeaders: [
      optional(ResponseHeaders),
      (failureFunction, _, shown) => {
        const last = lastResponseOf(failureFunction);
        return last && headerView(last.header, shown);
      },
    ],
    errors: [ErrorsSchema, ({ failures }, _, shown) => errorsView(failures, shown)],
    nextDeliveryTime: [
      optional(Ms),
      ({ pending, failures }) => (pending && !pending.isInFlight && failures.length > 0 ? pending.dueAtMs : undefined),
    ],
  },
  'FailureFunction',
);

function lastResponseOf({ response, failures }: FailureFunction): KeptResponse | undefined {
  return response ?? failures.at(-1)?.response;
}

/** Links a failed run with the run that resumes or restarts it. Our own addition. */
const RUN_LINK = shapeOf<[RunLink]>()({
  workflowRunId: [Text, ({ id }) => id],
  workflowRunCreatedAt: [Ms, ({ createdAtMs }) => createdAtMs],
});

const INVOKER = shapeOf<[NonNullable<LoggedRun['invoker']>]>()({
  workflowRunId: [Text, ({ id }) => id],
  workflowUrl: [Text, ({ url }) => maskPassword(url)],
  workflowRunCreatedAt: [Ms, ({ createdAtMs }) => createdAtMs],
});

const StepGroupSchema = Type.Union([
  exactly({ type: oneOf('sequential', 'parallel'), steps: Type.Array(StepSchema, { minItems: 1 }) }),
  exactly({ type: Type.Literal('next'), steps: Type.Array(NEXT_STEP.schema, { minItems: 1 }) }),
]);

function stepGroupsView({ groups, next }: RunLog, shown: ViewLimits): View[] {
  const shownGroups = groups.map(({ type, steps }) => ({ steps: steps.map((step) => stepView(step, shown)), type }));
  return next.length === 0
    ? shownGroups
    : [...shownGroups, { steps: next.map((step) => NEXT_STEP.view(step, shown)), type: 'next' }];
}

/** The object of contract W 18.1. */
const RUN = shapeOf<[log: RunLog, shown: ViewLimits]>()(
  {
    workflowRunId: [Text, ({ run }) => run.id],
    workflowUrl: [Text, ({ run }) => maskPassword(run.url)],
    workflowState: [oneOf('RUN_STARTED', 'RUN_SUCCESS', 'RUN_FAILED', 'RUN_CANCELED'), ({ run }) => run.state],
    workflowRunCreatedAt: [Ms, ({ run }) => run.createdAtMs],
    workflowRunCompletedAt: [optional(Ms), ({ run }) => run.completedAtMs],
    workflowRunCallerIp: [optional(Text), ({ run }) => run.callerIp],
    steps: [Type.Array(StepGroupSchema), stepGroupsView],
    workflowRunResponse: [optional(Text), ({ run }, shown) => bodyView(run.response, shown)],
    invoker: [optional(INVOKER.schema), ({ run }) => run.invoker && INVOKER.view(run.invoker)],
    failureFunction: [
      optional(FAILURE_FUNCTION.schema),
      (log, shown) => log.failureFunction && FAILURE_FUNCTION.view(log.failureFunction, log, shown),
    ],
    dlqId: [optional(Text), ({ run }) => run.dlqId],
    label: [optional(Text), ({ run }) => run.config.labels?.[0]],
    labels: [LabelsSchema, ({ run }) => (run.config.labels?.length ? run.config.labels : undefined)],
    flowControlKey: [optional(Text), ({ run }) => run.config.flowControl?.key],
    predecessor: [
      optional(RUN_LINK.schema),
      ({ run }) => run.config.predecessor && RUN_LINK.view(run.config.predecessor),
    ],
    successor: [optional(RUN_LINK.schema), ({ run }) => run.config.successor && RUN_LINK.view(run.config.successor)],
  },
  'WorkflowRun',
);

export const RunListSchema = exactly({ cursor: optional(Text), runs: Type.Array(RUN.schema) });

export function runLogView(log: RunLog, bodyBytesMax?: number): View {
  return RUN.view(log, { redact: log.run.config.redact, bodyBytesMax });
}

const RunEventSchema = exactly(
  {
    time: Ms,
    state: oneOf(...LOG_STATES, ...RUN_LOG_STATES),
    workflowRunId: Text,
    workflowUrl: Text,
    workflowCreatedAt: Ms,
    stepInfo: optional(STEP_INFO.schema),
    nextDeliveryTime: optional(Ms),
    headers: optional(HeaderMapSchema),
    error: optional(Text),
    responseStatus: optional(Count),
    responseBody: optional(Text),
    responseHeaders: optional(ResponseHeaders),
    invokerWorkflowRunId: optional(Text),
    invokerWorkflowUrl: optional(Text),
    invokerWorkflowCreatedAt: optional(Ms),
    workflowRunResponse: optional(Text),
    dlqId: optional(Text),
    label: optional(Text),
    labels: LabelsSchema,
    callerIp: optional(Text),
  },
  'RunEvent',
);

export const RunEventsSchema = exactly({ cursor: optional(Text), events: Type.Array(RunEventSchema) });

/** The object of contract W 18.2. */
export function runEventView(event: RunEvent): View {
  const { atMs, state, run, message, record, child, detail } = event;
  const { config } = run;
  const shown = withRedaction({ redact: config?.redact, bodyBytesMax: undefined }, message?.settings.redact);
  const isInitial = message?.settings.run?.init !== undefined;
  const info = message && stepInfoOf(message, { isInitial, ...(record && { record }), ...(child && { child }) });
  return {
    time: atMs,
    state,
    workflowRunId: run.id,
    workflowUrl: maskPassword(run.url),
    workflowCreatedAt: run.createdAtMs,
    stepInfo: info && stepInfoView(info, shown),
    ...detailView(detail, shown),
    nextDeliveryTime: nextDeliveryTime(event),
    headers: state === 'ERROR' && message ? headerView(message.header, shown) : undefined,
    invokerWorkflowRunId: run.invoker?.id,
    invokerWorkflowUrl: run.invoker && maskPassword(run.invoker.url),
    invokerWorkflowCreatedAt: run.invoker?.createdAtMs,
    workflowRunResponse: bodyView(run.response, shown),
    dlqId: run.dlqId,
    ...labelView({ labels: config?.labels ?? message?.settings.labels }),
    callerIp: run.callerIp,
  };
}

export const RunExplanationSchema = exactly(
  {
    workflowRunId: Text,
    workflowCreatedAt: Ms,
    reason: oneOf(
      ...UNFINISHED_REASONS,
      ...['sleeping', 'waiting', 'invoked', 'stuck', 'succeeded', 'failed', 'cancelled'],
    ),
    explanation: Text,
    others: Type.Integer({ minimum: 0, description: 'number of other unfinished messages and waits of the run' }),
    stepId: optional(AtLeastOne),
    stepName: optional(Type.String()),
    stepType: optional(Type.String()),
    messageId: optional(MessageIdSchema),
    since: optional(Ms),
    due: optional(Ms),
    at: optional(Ms),
    dlqId: optional(Text),
    retried: optional(Count),
    flowControlKey: optional(Text),
    eventId: optional(Text),
    url: optional(Text),
    invokedWorkflowRunId: optional(Text),
    cell: CellName,
  },
  'RunExplanation',
);

/** The reason why a run waits, or how it ended, as a sentence and as fields. Our own addition. */
export function runExplanationView({ runId, createdAtMs, sentence, ...rest }: RunExplanation): View {
  const { reason, others, sinceMs, dueAtMs, atMs, invokedRunId, ...fields } = rest;
  return {
    workflowRunId: runId,
    workflowCreatedAt: createdAtMs,
    reason,
    explanation: sentence,
    others,
    ...fields,
    since: sinceMs,
    due: dueAtMs,
    at: atMs,
    invokedWorkflowRunId: invokedRunId,
  };
}

function detailView(detail: LogDetail | undefined, shown: ViewLimits): View {
  if (!detail) return {};
  const { error, response } = detail;
  return {
    error: errorText(error, response),
    responseStatus: response?.status,
    responseBody: bodyView(response?.body, shown),
    responseHeaders: response && headerView(response.header, shown),
  };
}

/** For a new message, its first due time; for a failed attempt, the time of the next attempt. */
function nextDeliveryTime({ state, message, detail }: RunEvent): number | undefined {
  if (state === 'RETRY' || state === 'STEP_PARKED') return detail?.nextDeliveryTimeMs;
  return state === 'CREATED' ? (detail?.nextDeliveryTimeMs ?? message?.notBeforeMs) : undefined;
}

function withBytesMax(bytesMax: number, { redact, bodyBytesMax = bytesMax }: ViewLimits): ViewLimits {
  return { redact, bodyBytesMax: Math.min(bytesMax, bodyBytesMax) };
}

/** The body as text, or as base64 if it is not valid UTF-8. Returns `undefined` if the view shows no body. */
function bodyView(bytes: Uint8Array | undefined, { redact, bodyBytesMax }: ViewLimits): string | undefined {
  if (!bytes || bytes.length === 0 || bodyBytesMax === 0) return undefined;
  return redact?.body ? redactedText(bytes) : bodyText(bytes, bodyBytesMax);
}

function headerView(header: HeaderMap, { redact }: ViewLimits): HeaderMap | undefined {
  return nonEmpty(redactHeaderMap(header, redact));
}
