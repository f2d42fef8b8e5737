/** The JSON schemas of journals, failed runs and started runs (contract W 17.2, 21). Shared schemas are in `schemas.ts`. */
import { Type } from '@sinclair/typebox';
import { exactly, HeaderMapSchema, lastResponse, Ms, message, Text } from '../schemas.ts';

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
    ...lastResponse,
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
