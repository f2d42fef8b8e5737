/**
 * The schemas of responses (contract M 17, 18, 22). The interface document is built from them, and tests check every response
 * against them.
 */
import { type TProperties, type TSchema, Type } from '@sinclair/typebox';
import { TOKEN_SCOPES } from '../engine/accounts/store.ts';
import type { QueueBlocker } from '../engine/lanes/lanes.ts';
import { UNFINISHED_STATES } from '../engine/lists/unfinished.ts';
import { REASONS, UNFINISHED_REASONS } from '../engine/messages/explain.ts';
import { LOG_STATES } from '../engine/model.ts';
import { NEW_NAME_PATTERN } from '../protocol/names.ts';
import { MethodSchema, SHOWN_OPTIONS } from '../protocol/options/config-options.ts';
import { SIGNATURE_CHECKS } from '../protocol/signature.ts';

export const Ms = Type.Integer({ minimum: 0, description: 'Unix time in milliseconds' });
export const Text = Type.String({ minLength: 1 });
const Name = Type.String({ maxLength: 255, pattern: NEW_NAME_PATTERN });
export const AtLeastOne = Type.Integer({ minimum: 1 });
export const HeaderMapSchema = Type.Record(Type.String(), Type.Array(Type.String(), { minItems: 1 }), {
  $id: 'HeaderMap',
  description: 'Canonical header name to its values.',
});
const State = Type.Union(
  LOG_STATES.map((name) => Type.Literal(name)),
  { $id: 'State' },
);

/**
 * An object with exactly these members; an undocumented member is an error. The document defines an object with `$id`
 * once.
 */
export function exactly<T extends TProperties>(members: T, $id?: string) {
  return Type.Object(members, { additionalProperties: false, ...($id === undefined ? undefined : { $id }) });
}

/** An object on the wire. A member that is `undefined` is absent, since `JSON.stringify` drops it. */
export type View = Record<string, unknown>;

/** By member: the schema, and a function that reads the value. */
type Members<From extends readonly unknown[]> = Readonly<
  Record<string, readonly [TSchema, (...from: From) => unknown]>
>;

/** The schema of an object, and a function that creates its view, with the members in the same order. */
export function shapeOf<From extends readonly unknown[]>() {
  return <M extends Members<From>>(members: M, $id?: string) => {
    const rows = Object.entries(members);
    const schemas = Object.fromEntries(rows.map(([name, [schema]]) => [name, schema]));
    const view = (...from: From): View => {
      const object: View = {};
      for (const [name, [, read]] of rows) object[name] = read(...from);
      return object;
    };
    return { schema: exactly(schemas as { [Name in keyof M]: M[Name][0] }, $id), view };
  };
}

function optionMembers(place: 'as' | 'inLogs'): TProperties {
  const members = SHOWN_OPTIONS.map(({ schema, ...shown }) => [shown[place], Type.Optional(schema)] as const);
  return Object.fromEntries(members.filter(([name]) => name !== undefined));
}

export const LabelsSchema = Type.Optional(Type.Array(Text, { minItems: 1 }));
export const MessageIdSchema = Type.String({ pattern: '^msg_' });
const attributes = {
  messageId: MessageIdSchema,
  url: Text,
  method: MethodSchema,
  maxRetries: Type.Integer({ minimum: 0 }),
  header: Type.Optional(HeaderMapSchema),
  topicName: Type.Optional(Text),
  endpointName: Type.Optional(Text),
  queueName: Type.Optional(Text),
  scheduleId: Type.Optional(Text),
  replayOf: Type.Optional(Type.String({ pattern: '^msg_', description: 'the message that it repeats' })),
  callback: Type.Optional(Text),
  failureCallback: Type.Optional(Text),
  callerIP: Type.Optional(Text),
  callerIp: Type.Optional(Text),
  label: Type.Optional(Text),
  labels: LabelsSchema,
  flowControlKey: Type.Optional(Text),
  parallelism: Type.Optional(Type.Integer({ minimum: 1 })),
  rate: Type.Optional(Type.Integer({ minimum: 1 })),
  period: Type.Optional(Type.Integer({ minimum: 1, description: 'seconds' })),
  ...optionMembers('as'),
};

const callbackHeaders = {
  callbackHeader: Type.Optional(HeaderMapSchema),
  failureCallbackHeader: Type.Optional(HeaderMapSchema),
};

export const message = {
  ...attributes,
  notBefore: Ms,
  createdAt: Ms,
  body: Type.Optional(Text),
  bodyBase64: Type.Optional(Text),
  ...callbackHeaders,
};

const Reason = Type.Union([Type.Literal('lost'), Type.Literal('ended')], { description: 'of a checkpoint' });
export const ErrorSchema = exactly({ error: Text, reason: Type.Optional(Reason) }, 'Error');
export const MessageSchema = exactly(message, 'Message');

const explanation = {
  explanation: Text,
  retried: Type.Integer({ minimum: 0 }),
  since: Type.Optional(Ms),
  due: Type.Optional(Ms),
};

export const CellName = Type.Optional(
  Type.String({ minLength: 1, description: 'where the project lives, if there are several cells' }),
);

/** The message that blocks a queue. */
export const BLOCKER = shapeOf<[QueueBlocker]>()({
  messageId: [Text, ({ messageId }) => messageId],
  due: [Ms, ({ dueAtMs }) => dueAtMs],
});

export const ExplanationSchema = exactly(
  {
    ...explanation,
    reason: Type.Union(REASONS.map((name) => Type.Literal(name))),
    at: Type.Optional(Ms),
    dlqId: Type.Optional(Text),
    queueName: Type.Optional(Text),
    ahead: Type.Optional(Type.Integer({ minimum: 0, description: 'messages ahead of it in its queue' })),
    blockedBy: Type.Optional(BLOCKER.schema),
    flowControlKey: Type.Optional(Text),
    replays: Type.Optional(
      Type.Array(MessageIdSchema, { minItems: 1, description: 'its latest replays, newest first' }),
    ),
    cell: CellName,
  },
  'Explanation',
);

export const UnfinishedReasonSchema = Type.Union(
  UNFINISHED_REASONS.map((name) => Type.Literal(name)),
  { $id: 'UnfinishedReason' },
);
const { body: _body, bodyBase64: _bodyBase64, ...withoutBody } = message;
export const UnfinishedListSchema = exactly({
  messages: Type.Array(
    exactly(
      {
        ...withoutBody,
        ...explanation,
        bodyBytes: Type.Integer({ minimum: 0 }),
        state: Type.Union(UNFINISHED_STATES.map((state) => Type.Literal(state))),
        reason: UnfinishedReasonSchema,
      },
      'UnfinishedMessage',
    ),
  ),
  cursor: Type.Optional(Text),
});

/** The last response of a dead message, or of the message that a run failed with. */
export const lastResponse = {
  responseStatus: Type.Integer({ minimum: 0 }),
  responseHeader: Type.Optional(HeaderMapSchema),
  responseBody: Type.Optional(Text),
  responseBodyBase64: Type.Optional(Text),
};

export const DeadMessageSchema = exactly({ ...message, dlqId: Text, ...lastResponse }, 'DeadMessage');

export const LogEntrySchema = exactly(
  {
    ...attributes,
    time: Ms,
    state: State,
    body: Type.Optional(Text),
    error: Type.Optional(Text),
    nextDeliveryTime: Type.Optional(Ms),
    responseStatus: Type.Optional(Type.Integer()),
    responseBody: Type.Optional(Text),
    responseHeaders: Type.Optional(Type.Record(Type.String(), Type.Array(Type.String()))),
    responseHeader: Type.Optional(Type.Record(Type.String(), Type.Array(Type.String()))),
    callbackHeaders: Type.Optional(HeaderMapSchema),
    failureCallbackHeaders: Type.Optional(HeaderMapSchema),
    ...optionMembers('inLogs'),
  },
  'LogEntry',
);

const PublishedSchema = exactly(
  {
    messageId: attributes.messageId,
    url: Text,
    deduplicated: Type.Optional(Type.Literal(true)),
    state: Type.Optional(
      Type.Union([Type.Literal('FAILED'), Type.Literal('CANCELED')], {
        description: 'with deduplicated: that earlier message is never delivered',
      }),
    ),
  },
  'Published',
);

/** One element for each endpoint of the URL group. */
const PublishedToGroupSchema = Type.Array(PublishedSchema, { minItems: 1 });
export const ScheduleCreatedSchema = exactly({ scheduleId: Text }, 'ScheduleCreated');
export const PublishSchema = Type.Union([PublishedSchema, PublishedToGroupSchema, ScheduleCreatedSchema]);
export const BatchSchema = Type.Array(Type.Union([PublishedSchema, PublishedToGroupSchema, ErrorSchema]));
const {
  messageId: _id,
  url: _url,
  maxRetries,
  topicName: _topic,
  endpointName: _endpoint,
  replayOf: _replayOf,
  ...scheduled
} = attributes;
export const ScheduleSchema = exactly(
  {
    ...scheduled,
    scheduleId: Text,
    cron: Text,
    createdAt: Ms,
    destination: Type.String({ minLength: 1, description: 'URL, or name of a URL group' }),
    body: Type.Optional(Text),
    bodyBase64: Type.Optional(Text),
    retries: maxRetries,
    delay: Type.Optional(Type.Integer({ minimum: 0, description: 'seconds' })),
    ...callbackHeaders,
    catchUp: Type.Optional(Type.Union([Type.Literal('skip'), Type.Literal('one'), Type.Literal('all')])),
    overlap: Type.Optional(Type.Union([Type.Literal('allow'), Type.Literal('skip')])),
    isPaused: Type.Boolean(),
    nextScheduleTime: Ms,
    lastScheduleTime: Type.Optional(Ms),
    lastScheduleStates: Type.Optional(
      Type.Record(
        Type.String(),
        Type.Union([Type.Literal('IN_PROGRESS'), Type.Literal('SUCCESS'), Type.Literal('FAIL')]),
        { description: 'by message id, those of the latest trigger' },
      ),
    ),
    error: Type.Optional(Type.String({ minLength: 1, description: 'why the latest trigger published no message' })),
  },
  'Schedule',
);
export const ScheduleListSchema = Type.Array(ScheduleSchema);

const Selectors = Type.Array(Type.Object({ url: Type.Optional(Text), name: Type.Optional(Text) }), { minItems: 1 });
/** The body for adding and removing endpoints. */
export const EndpointsSchema = Type.Object({ endpoints: Selectors });
/** The body for setting default headers. */
export const GroupHeadersSchema = Type.Object({
  headers: Type.Record(Type.String(), Type.Union([Type.String(), Type.Array(Type.String())])),
});

/** The body for creating or updating a queue. */
export const QueueSettingsSchema = Type.Object({
  queueName: Name,
  parallelism: Type.Optional(Type.Integer({ minimum: 1, default: 1 })),
  paused: Type.Optional(Type.Boolean({ description: 'default: false' })),
});

export const Limit = Type.Integer({ minimum: 0, description: '0: not limited' });
export const Count = Type.Integer({ minimum: 0 });
export const GlobalParallelismSchema = exactly({ parallelismMax: Limit, parallelismCount: Count }, 'GlobalParallelism');

export const WaitingSchema = exactly(
  { messageId: attributes.messageId, deduplicated: Type.Optional(Type.Literal(true)) },
  'Waiting',
);
/** The body of a wait (contract W 14.6). */
export const WaitSchema = Type.Object({
  url: Type.Optional(Text),
  timeout: Type.Optional(Type.String({ description: 'a duration; default: 7d', examples: ['20s'] })),
  timeoutUrl: Type.Optional(Text),
  timeoutHeaders: Type.Optional(Type.Record(Type.String(), Type.Union([Type.String(), Type.Array(Type.String())]))),
  timeoutBody: Type.Optional(Type.String({ description: 'base64' })),
  step: Type.Object({ stepId: AtLeastOne }),
});

export const CancelledSchema = exactly({ cancelled: Type.Integer({ minimum: 0 }) }, 'Cancelled');
export const DeadListSchema = exactly({ messages: Type.Array(DeadMessageSchema), cursor: Type.Optional(Text) });
export const DeletedSchema = exactly({ deleted: Type.Integer({ minimum: 0 }), cursor: Type.Optional(Text) });
export const RetriedSchema = exactly({ messageId: attributes.messageId }, 'Retried');
export const RetriedManySchema = exactly({ cursor: Type.String(), responses: Type.Array(RetriedSchema) });
export const EventsSchema = exactly({ cursor: Type.Optional(Text), events: Type.Array(LogEntrySchema) });
export const LogsSchema = exactly({
  cursor: Type.Optional(Text),
  logs: Type.Array(LogEntrySchema),
  events: Type.Array(LogEntrySchema),
});
export const SigningKeysSchema = exactly({ current: Text, next: Text }, 'SigningKeys');

export const TokenScopeSchema = Type.Union(
  TOKEN_SCOPES.map((scope) => Type.Literal(scope)),
  { $id: 'TokenScope' },
);
/** The body of a request to verify a signature. */
export const SignatureCheckSchema = Type.Object({
  signature: Type.String({ description: 'the value of the header Upstash-Signature' }),
  body: Type.String({ description: 'the body that was signed' }),
  url: Type.Optional(Type.String({ description: 'the URL as it was requested; absent: not checked' })),
});
export const SignatureVerdictSchema = exactly(
  {
    isValid: Type.Boolean(),
    failed: Type.Optional(
      Type.Array(
        exactly({
          claim: Type.Union(SIGNATURE_CHECKS.map((claim) => Type.Literal(claim))),
          reason: Type.String({ description: 'the end of a sentence about the claim' }),
        }),
        { minItems: 1, description: 'only if the signature is not valid' },
      ),
    ),
  },
  'SignatureVerdict',
);
export const SessionSchema = exactly(
  {
    project: Text,
    scope: TokenScopeSchema,
    tokenName: Type.Optional(Text),
  },
  'Session',
);
export const TokenNameSchema = Type.String({ minLength: 1, maxLength: 100, description: 'printable characters' });
/** The body of a request for a new token. */
export const NewTokenSchema = Type.Object({ name: Type.Optional(TokenNameSchema), scope: TokenScopeSchema });
/** `away`: cells that cannot read and save, if any. `reasons`: the reason for each of these cells, by the cell's name. */
export const HealthSchema = exactly(
  { status: Text, away: Type.Optional(Type.Array(Text)), reasons: Type.Optional(Type.Record(Type.String(), Text)) },
  'Health',
);

/** The body of a batch; unknown members are ignored. */
const itemMembers = {
  body: Type.Optional(Type.Union([Type.String(), Type.Null()])),
  headers: Type.Optional(
    Type.Union([Type.Record(Type.String(), Type.Union([Type.String(), Type.Array(Type.String())])), Type.Null()], {
      description: 'the headers that a request for this item alone would have',
    }),
  ),
};

export const BatchItemsSchema = Type.Array(
  Type.Object(
    {
      destination: Type.String({ description: 'URL to deliver to, not escaped' }),
      ...itemMembers,
      queue: Type.Optional(
        Type.Union([Type.String(), Type.Null()], { description: 'name of the queue to put the message into' }),
      ),
    },
    { $id: 'BatchItem' },
  ),
);

export const TriggerItemsSchema = Type.Array(
  Type.Object(
    { destination: Type.String({ description: 'URL of the workflow, not escaped' }), ...itemMembers },
    { $id: 'TriggerItem' },
  ),
);

const ItemOfRun = Type.Object(
  { destination: Type.String({ description: 'URL to deliver to, not escaped' }), ...itemMembers },
  { $id: 'CheckpointItem' },
);
const StepOfRun = Type.Object({ stepId: Type.Integer({ minimum: 0 }) }, { $id: 'CheckpointStep' });
export const CheckpointSchema = Type.Object({
  done: Type.Optional(Type.Array(Text, { description: 'tokens of the messages that are delivered with it' })),
  failed: Type.Optional(
    Type.Array(
      Type.Object(
        {
          token: Text,
          status: Type.Integer({ minimum: 300, maximum: 599 }),
          headers: Type.Optional(Type.Record(Type.String(), Type.String())),
          body: Type.Optional(Type.String()),
        },
        { $id: 'CheckpointFailure' },
      ),
      { description: 'messages whose attempt has failed, each as if the call had returned this response' },
    ),
  ),
  lingerMs: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: 10_000,
      description: 'how long to wait for the next work of the run, in milliseconds',
    }),
  ),
  append: Type.Optional(
    Type.Array(
      Type.Object(
        {
          step: Type.Optional(StepOfRun),
          delay: Type.Optional(Type.String({ description: 'a duration', examples: ['20s'] })),
          notBefore: Type.Optional(Type.Integer({ minimum: 0, description: 'Unix time in seconds' })),
          call: Type.Optional(ItemOfRun),
          invoke: Type.Optional(ItemOfRun),
          wait: Type.Optional(
            Type.Object({
              eventId: Name,
              timeout: Type.Optional(Type.String({ description: 'a duration; default: 7d', examples: ['20s'] })),
              step: StepOfRun,
            }),
          ),
        },
        { $id: 'CheckpointElement' },
      ),
      { description: 'new journal entries: each has one of step, call, invoke and wait' },
    ),
  ),
});
export const CheckpointSavedSchema = exactly(
  {
    entries: Type.Array(
      exactly(
        {
          messageId: attributes.messageId,
          token: Type.Optional(Type.String({ description: 'the call continues with this message' })),
        },
        'CheckpointEntry',
      ),
    ),
    next: Type.Optional(
      exactly(
        {
          messageId: attributes.messageId,
          token: Text,
          retried: Type.Integer({ minimum: 0 }),
          entries: Type.Optional(Type.Array(Type.Unknown(), { description: 'of the journal, as in a delivery' })),
          headers: Type.Optional(HeaderMapSchema),
          body: Type.Optional(Type.String({ description: 'the result of a call' })),
        },
        'CheckpointNext',
      ),
    ),
  },
  'CheckpointSaved',
);

const triggered = { workflowRunId: Text, workflowCreatedAt: Ms };
export const TriggeredSchema = exactly({ ...triggered, deduplicated: Type.Optional(Type.Literal(true)) }, 'Triggered');
export const TriggeredListSchema = Type.Array(exactly({ ...triggered, deduplicated: Type.Boolean() }, 'TriggeredItem'));

export const DocumentSchema = Type.Object({ openapi: Type.String() }, { description: 'An OpenAPI document' });
export const PageSchema = Type.String({ contentMediaType: 'text/html' });
