/** The shapes of answers about workflow runs (contract W 17.2, 18, 20, 21); like `schemas.ts`. */
import { Type } from '@sinclair/typebox';
import { UNFINISHED_REASONS } from '../../engine/messages/explain.ts';
import { LOG_STATES, RUN_LOG_STATES } from '../../engine/model.ts';
import { CellName, Count, exactly, HeaderMapSchema, Ms, message, Text } from '../schemas.ts';

const CallType = Type.Union(['step', 'toCallback', 'fromCallback', 'stepConfig'].map((name) => Type.Literal(name)));

export const JournalSchema = Type.Array(
  exactly(
    {
      messageId: message.messageId,
      body: Type.String({ description: 'base64' }),
      callType: CallType,
    },
    'JournalEntry',
  ),
  { minItems: 1 },
);

const FailureCallbackState = Type.Union(
  ['CALLBACK_INPROGRESS', 'CALLBACK_SUCCESS', 'CALLBACK_FAIL', 'CALLBACK_CANCELED'].map((name) => Type.Literal(name)),
  { $id: 'FailureCallbackState' },
);

export const DeadRunSchema = exactly(
  {
    ...message,
    dlqId: Text,
    workflowRunId: Text,
    workflowUrl: Text,
    workflowCreatedAt: Ms,
    responseStatus: Type.Integer({ minimum: 0 }),
    responseHeader: Type.Optional(HeaderMapSchema),
    responseBody: Type.Optional(Text),
    responseBodyBase64: Type.Optional(Text),
    failureCallbackInfo: Type.Optional(
      exactly({
        state: FailureCallbackState,
        responseStatus: Type.Optional(Type.Integer({ minimum: 0 })),
        responseBody: Type.Optional(Text),
        responseHeaders: Type.Optional(HeaderMapSchema),
      }),
    ),
    failureFunctionState: Type.Optional(FailureCallbackState),
  },
  'DeadRun',
);
export const DeadRunListSchema = exactly({ messages: Type.Array(DeadRunSchema), cursor: Type.Optional(Text) });

export const StartedRunSchema = exactly({ workflowRunId: Text, workflowCreatedAt: Ms }, 'StartedRun');
export const StartedRunsSchema = exactly({
  workflowRuns: Type.Array(StartedRunSchema),
  cursor: Type.Optional(Text),
});

const oneOf = <Name extends string>(...names: Name[]) => Type.Union(names.map((name) => Type.Literal(name)));
const optional = Type.Optional;
const AtLeastOne = Type.Integer({ minimum: 1 });
/** Headers of an endpoint's answer, which may be none. */
const AnswerHeaders = Type.Record(Type.String(), Type.Array(Type.String()));

const labels = { label: optional(Text), labels: optional(Type.Array(Text, { minItems: 1 })) };

const stepInfo = {
  stepId: optional(AtLeastOne),
  stepName: optional(Type.String()),
  stepType: optional(Type.String({ description: 'such as Run, SleepFor or Call; Initial for the payload' })),
  callType: oneOf('step', 'toCallback', 'fromCallback', 'failureCall', 'stepConfig'),
  messageId: Type.String({ pattern: '^msg_' }),
  concurrent: AtLeastOne,
  targetStep: optional(AtLeastOne),
  createdAt: Ms,
  out: optional(Text),
  headers: optional(HeaderMapSchema),
  retries: Count,
  retryDelay: optional(Text),
  sleepFor: optional(Type.Integer({ minimum: 0, description: 'milliseconds' })),
  sleepUntil: optional(Ms),
  callUrl: optional(Text),
  callMethod: optional(Text),
  callHeaders: optional(HeaderMapSchema),
  callBody: optional(Text),
  callResponseStatus: optional(Count),
  callResponseBody: optional(Text),
  callResponseHeaders: optional(AnswerHeaders),
  waitEventId: optional(Text),
  waitTimeoutDuration: optional(Text),
  waitTimeoutDeadline: optional(Ms),
  waitTimeout: optional(Type.Literal(true)),
  invokedWorkflowRunId: optional(Text),
  invokedWorkflowUrl: optional(Text),
  invokedWorkflowCreatedAt: optional(Ms),
  invokedWorkflowRunBody: optional(Text),
  invokedWorkflowRunHeaders: optional(HeaderMapSchema),
};

const StepInfoSchema = exactly(stepInfo, 'StepInfo');

const RunEventSchema = exactly(
  {
    time: Ms,
    state: oneOf(...LOG_STATES, ...RUN_LOG_STATES),
    workflowRunId: Text,
    workflowUrl: Text,
    workflowCreatedAt: Ms,
    stepInfo: optional(StepInfoSchema),
    nextDeliveryTime: optional(Ms),
    headers: optional(HeaderMapSchema),
    error: optional(Text),
    responseStatus: optional(Count),
    responseBody: optional(Text),
    responseHeaders: optional(AnswerHeaders),
    invokerWorkflowRunId: optional(Text),
    invokerWorkflowUrl: optional(Text),
    invokerWorkflowCreatedAt: optional(Ms),
    workflowRunResponse: optional(Text),
    dlqId: optional(Text),
    ...labels,
    callerIp: optional(Text),
  },
  'RunEvent',
);

export const RunEventsSchema = exactly({ cursor: optional(Text), events: Type.Array(RunEventSchema) });

const StepErrorSchema = exactly(
  { error: Type.String(), body: Type.String(), headers: AnswerHeaders, status: optional(Count), time: Ms },
  'StepError',
);

const troubles = { errors: optional(Type.Array(StepErrorSchema, { minItems: 1 })), nextDeliveryTime: optional(Ms) };
const StepState = oneOf('STEP_PROGRESS', 'STEP_RETRY', 'STEP_PARKED', 'STEP_SUCCESS', 'STEP_FAILED', 'STEP_CANCELED');
const StepSchema = exactly({ ...stepInfo, state: StepState, ...troubles }, 'Step');
const NextStepSchema = exactly(
  {
    messageId: stepInfo.messageId,
    stepName: optional(Type.String()),
    state: StepState,
    retries: Count,
    retryDelay: optional(Text),
    ...troubles,
  },
  'NextStep',
);

const StepGroupSchema = Type.Union([
  exactly({ type: oneOf('sequential', 'parallel'), steps: Type.Array(StepSchema, { minItems: 1 }) }),
  exactly({ type: Type.Literal('next'), steps: Type.Array(NextStepSchema, { minItems: 1 }) }),
]);

const FailureFunctionSchema = exactly(
  {
    messageId: stepInfo.messageId,
    url: Text,
    state: oneOf('CALLBACK_INPROGRESS', 'CALLBACK_SUCCESS', 'CALLBACK_FAIL', 'CALLBACK_CANCELED'),
    failStatus: Count,
    failResponse: Type.String(),
    failHeaders: AnswerHeaders,
    dlqId: optional(Text),
    maxRetries: Count,
    responseStatus: optional(Count),
    responseBody: optional(Text),
    responseHeaders: optional(AnswerHeaders),
    ...troubles,
  },
  'FailureFunction',
);

const RunSchema = exactly(
  {
    workflowRunId: Text,
    workflowUrl: Text,
    workflowState: oneOf('RUN_STARTED', 'RUN_SUCCESS', 'RUN_FAILED', 'RUN_CANCELED'),
    workflowRunCreatedAt: Ms,
    workflowRunCompletedAt: optional(Ms),
    workflowRunCallerIp: optional(Text),
    steps: Type.Array(StepGroupSchema),
    workflowRunResponse: optional(Text),
    invoker: optional(exactly({ workflowRunId: Text, workflowUrl: Text, workflowRunCreatedAt: Ms })),
    failureFunction: optional(FailureFunctionSchema),
    dlqId: optional(Text),
    ...labels,
    flowControlKey: optional(Text),
    predecessor: optional(exactly({ workflowRunId: Text, workflowRunCreatedAt: Ms })),
    successor: optional(exactly({ workflowRunId: Text, workflowRunCreatedAt: Ms })),
  },
  'WorkflowRun',
);

export const RunListSchema = exactly({ cursor: optional(Text), runs: Type.Array(RunSchema) });

export const RunExplanationSchema = exactly(
  {
    workflowRunId: Text,
    workflowCreatedAt: Ms,
    reason: oneOf(
      ...UNFINISHED_REASONS,
      ...['sleeping', 'waiting', 'invoked', 'stuck', 'succeeded', 'failed', 'cancelled'],
    ),
    explanation: Text,
    others: Type.Integer({ minimum: 0, description: 'what else of the run is unfinished' }),
    stepId: optional(AtLeastOne),
    stepName: optional(Type.String()),
    stepType: optional(Type.String()),
    messageId: optional(stepInfo.messageId),
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
