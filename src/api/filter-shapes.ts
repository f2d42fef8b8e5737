/** The filters of lists and bulk actions as the interface document shows them (contract M 21). */
import { type TSchema, Type } from '@sinclair/typebox';
import { type Amount, type FilterUse, filterNames, STATE_NAMES } from './filters.ts';
import { FILTER_VALUES_MAX, IDS_MAX } from './limits.ts';
import type { QueryParameter } from './takes.ts';

/** What a request of `use` may hold, in the order of the table in `filters.ts`. */
export function filterShapes(use: FilterUse, amount: Amount): QueryParameter[] {
  return filterNames(use).map((name) => shapeOf(name, amount));
}

function shapeOf(name: string, amount: Amount): QueryParameter {
  if (name === 'count') return countShape(amount);
  const known = SHAPES[name];
  // A new row of the table is in the document before anybody has written a sentence about it.
  return { name, meaning: known?.meaning ?? 'One of these values.', schema: known?.schema ?? several(Type.String()) };
}

function countShape({ countDefault, countMax, isLowered }: Amount): QueryParameter {
  const schema = Type.Integer({
    minimum: 1,
    ...(isLowered ? undefined : { maximum: countMax }),
    ...(countDefault === undefined ? undefined : { default: countDefault }),
  });
  const most = isLowered ? `More than ${countMax} is lowered to it.` : 'Everything that matches without it.';
  return { name: 'count', meaning: `How many at most. ${most}`, schema };
}

function several(schema: TSchema, valuesMax = FILTER_VALUES_MAX): TSchema {
  return Type.Array(schema, { maxItems: valuesMax });
}

const Ms = Type.Integer({ minimum: 0 });

const SHAPES: Readonly<Record<string, { meaning: string; schema: TSchema }>> = {
  messageId: { meaning: 'The message with this id.', schema: Type.String() },
  messageIds: {
    meaning: 'The messages with these ids.',
    schema: several(Type.String(), IDS_MAX),
  },
  dlqIds: {
    meaning: 'The dead messages with these DLQ ids; all other filters are ignored then.',
    schema: several(Type.String(), IDS_MAX),
  },
  url: { meaning: 'Destination, the whole URL.', schema: several(Type.String()) },
  host: { meaning: 'Host of the destination.', schema: several(Type.String()) },
  path: { meaning: 'Path of the destination.', schema: several(Type.String()) },
  topicName: { meaning: 'URL group that was published to.', schema: several(Type.String()) },
  endpointName: { meaning: 'Endpoint of the URL group, by its name there.', schema: several(Type.String()) },
  queueName: { meaning: 'Queue of the message.', schema: several(Type.String()) },
  scheduleId: { meaning: 'Schedule that made the message.', schema: several(Type.String()) },
  label: { meaning: 'One of the labels of the message.', schema: several(Type.String()) },
  flowControlKey: { meaning: 'Flow-control key of the message.', schema: several(Type.String()) },
  callerIp: { meaning: 'Address that published the message.', schema: several(Type.String()) },
  callerIP: { meaning: 'The same as callerIp.', schema: several(Type.String()) },
  state: {
    meaning: 'State that the entry tells of; IN_PROGRESS is ACTIVE, RETRY and ERROR.',
    schema: several(Type.Union(STATE_NAMES.map((name) => Type.Literal(name)))),
  },
  responseStatus: {
    meaning: "Status of the destination's last answer.",
    schema: several(Type.Integer({ minimum: 0 })),
  },
  fromDate: { meaning: 'Not before this Unix time in milliseconds.', schema: Ms },
  toDate: { meaning: 'Not after this Unix time in milliseconds.', schema: Ms },
  cursor: { meaning: 'Where the page before ended; take it from its answer.', schema: Type.String() },
  order: {
    meaning: 'Newest or oldest first.',
    schema: Type.Union([Type.Literal('latestFirst'), Type.Literal('earliestFirst')], { default: 'latestFirst' }),
  },
};
