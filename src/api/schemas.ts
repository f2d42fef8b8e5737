/** The shapes of answers (messaging.md 17, 18, 22). They make the interface document, and tests hold each answer against them. */
import { type TProperties, Type } from '@sinclair/typebox';

const Ms = Type.Integer({ minimum: 0, description: 'Unix time in milliseconds' });
const Text = Type.String({ minLength: 1 });
const HeaderMapSchema = Type.Record(Type.String(), Type.Array(Type.String(), { minItems: 1 }));
const Method = Type.Union(['GET', 'POST', 'PUT', 'PATCH', 'DELETE'].map((name) => Type.Literal(name)));
const State = Type.Union(
  ['CREATED', 'ACTIVE', 'DELIVERED', 'ERROR', 'RETRY', 'FAILED', 'CANCEL_REQUESTED', 'CANCELED'].map((name) =>
    Type.Literal(name),
  ),
);

/** An object with exactly these members: one that nobody documented is a mistake. */
function exactly<T extends TProperties>(members: T) {
  return Type.Object(members, { additionalProperties: false });
}

const attributes = {
  messageId: Type.String({ pattern: '^msg_' }),
  url: Text,
  method: Method,
  maxRetries: Type.Integer({ minimum: 0 }),
  header: Type.Optional(HeaderMapSchema),
  topicName: Type.Optional(Text),
  endpointName: Type.Optional(Text),
  queueName: Type.Optional(Text),
  scheduleId: Type.Optional(Text),
  callback: Type.Optional(Text),
  failureCallback: Type.Optional(Text),
  callerIP: Type.Optional(Text),
  callerIp: Type.Optional(Text),
  label: Type.Optional(Text),
  labels: Type.Optional(Type.Array(Text, { minItems: 1 })),
  flowControlKey: Type.Optional(Text),
  parallelism: Type.Optional(Type.Integer({ minimum: 1 })),
  rate: Type.Optional(Type.Integer({ minimum: 1 })),
  period: Type.Optional(Type.Integer({ minimum: 1, description: 'seconds' })),
  retryDelayExpression: Type.Optional(Text),
  timeout: Type.Optional(Type.Integer({ minimum: 1, description: 'milliseconds' })),
};

const message = {
  ...attributes,
  notBefore: Ms,
  createdAt: Ms,
  body: Type.Optional(Text),
  bodyBase64: Type.Optional(Text),
  callbackHeader: Type.Optional(HeaderMapSchema),
  failureCallbackHeader: Type.Optional(HeaderMapSchema),
};

export const ErrorSchema = exactly({ error: Text });
export const MessageSchema = exactly(message);

export const ExplanationSchema = exactly({
  reason: Type.Union(
    ['delayed', 'retrying', 'due', 'endpoint_busy', 'attempting', 'cancelling'].map((name) => Type.Literal(name)),
  ),
  explanation: Text,
  retried: Type.Integer({ minimum: 0 }),
  since: Type.Optional(Ms),
  due: Type.Optional(Ms),
});

export const DeadMessageSchema = exactly({
  ...message,
  dlqId: Text,
  responseStatus: Type.Integer({ minimum: 0 }),
  responseHeader: Type.Optional(HeaderMapSchema),
  responseBody: Type.Optional(Text),
  responseBodyBase64: Type.Optional(Text),
});

export const LogEntrySchema = exactly({
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
  retryDelayExpr: Type.Optional(Text),
});

const PublishedSchema = exactly({
  messageId: attributes.messageId,
  url: Text,
  deduplicated: Type.Optional(Type.Literal(true)),
});

/** One element for each endpoint of the URL group. */
const PublishedToGroupSchema = Type.Array(PublishedSchema, { minItems: 1 });
export const PublishSchema = Type.Union([PublishedSchema, PublishedToGroupSchema]);
export const BatchSchema = Type.Array(Type.Union([PublishedSchema, PublishedToGroupSchema, ErrorSchema]));
export const UrlGroupSchema = exactly({
  name: Text,
  createdAt: Ms,
  updatedAt: Ms,
  endpoints: Type.Array(exactly({ url: Text, name: Type.Optional(Text) }), { minItems: 1 }),
  headers: Type.Optional(HeaderMapSchema),
});
export const UrlGroupListSchema = Type.Array(UrlGroupSchema);
export const CancelledSchema = exactly({ cancelled: Type.Integer({ minimum: 0 }) });
export const DeadListSchema = exactly({ messages: Type.Array(DeadMessageSchema), cursor: Type.Optional(Text) });
export const DeletedSchema = exactly({ deleted: Type.Integer({ minimum: 0 }), cursor: Type.Optional(Text) });
export const RetriedSchema = exactly({ messageId: attributes.messageId });
export const RetriedManySchema = exactly({ cursor: Type.String(), responses: Type.Array(RetriedSchema) });
export const EventsSchema = exactly({ cursor: Type.Optional(Text), events: Type.Array(LogEntrySchema) });
export const LogsSchema = exactly({
  cursor: Type.Optional(Text),
  logs: Type.Array(LogEntrySchema),
  events: Type.Array(LogEntrySchema),
});
export const SigningKeysSchema = exactly({ current: Text, next: Text });
export const HealthSchema = exactly({ status: Text });
