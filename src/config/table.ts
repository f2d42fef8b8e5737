/**
 * Every setting. The parser, `--help`, docs/settings.md and `waypost config` are derived from this table. A comment
 * gives the reason for a default that is not obvious.
 */
import { DAY, GIB, HOUR, MIB, MINUTE, SECOND } from './measures.ts';
import { OPERATOR_EVENT_SETTINGS } from './operator-event-settings.ts';
import { SERVER_SETTINGS } from './server-settings.ts';
import { grouped, type Setting, type SettingRows, type ValueOf } from './setting.ts';

const REQUEST_SETTINGS = {
  messageBytesMax: {
    type: 'bytes',
    default: 10 * MIB,
    min: 1,
    max: 100 * MIB,
    meaning: 'Maximum body size of a message. Larger bodies are refused with 413, and with 412 in a running workflow.',
  },
  batchBytesMax: {
    type: 'bytes',
    default: 100 * MIB,
    min: 1,
    max: GIB,
    meaning: 'Maximum size of a batch request.',
  },
  batchItemsMax: {
    type: 'integer',
    default: 1000,
    min: 1,
    max: 100_000,
    meaning: 'Maximum number of messages in a batch request, and of workflow steps that start in parallel.',
  },
  requestMemoryBytesMax: {
    type: 'bytes',
    default: 256 * MIB,
    min: MIB,
    max: 64 * GIB,
    meaning:
      'Maximum size of all request bodies in memory, of which one project may use seven eighths. Further requests get 503. JSON counts twice.',
  },
  headerBytesMax: {
    type: 'bytes',
    default: 64 * 1024,
    min: 1024,
    max: MIB,
    meaning: 'Maximum size of all headers of a request. Larger ones are refused with 431.',
  },
  connectionsMax: {
    type: 'integer',
    default: 10_000,
    min: 1,
    max: 1_000_000,
    meaning: 'Maximum number of open client connections.',
  },
  headersTimeoutMs: {
    type: 'duration',
    default: 10 * SECOND, // a human typing is slower, a mobile link is not
    min: SECOND,
    max: HOUR,
    meaning: 'Time within which a client must send the headers of a request.',
  },
  requestTimeoutMs: {
    type: 'duration',
    default: MINUTE,
    min: SECOND,
    max: DAY,
    meaning: 'Time within which a client must send a whole request.',
  },
  keepAliveTimeoutMs: {
    type: 'duration',
    default: 75 * SECOND, // longer than in common load balancers, so that they close first and never use a closed connection
    min: SECOND,
    max: DAY,
    meaning: 'How long an idle client connection is kept open.',
  },
  publishDelayTargetMs: {
    type: 'duration',
    default: 500, // longer than a commit with a standby in another region, or during a pause of the disk
    min: 10,
    max: MINUTE,
    meaning:
      'How long publishes may wait to be stored. While all waiting publishes of a project exceed this, its newest get 503 with Retry-After.',
  },
  requestsPerSecondMax: {
    type: 'integer',
    default: 0,
    min: 0,
    max: 1_000_000,
    meaning:
      'Maximum requests per second and project, not counting publish, enqueue and batch. Further requests get 429. 0: no limit.',
  },
  messagesPerDayMax: {
    type: 'integer',
    default: 0,
    min: 0,
    max: 1_000_000_000_000,
    meaning: 'Maximum messages per day (UTC) and project, including callbacks. Further publishes get 429. 0: no limit.',
  },
  journalBytesMax: {
    type: 'bytes',
    default: 50 * MIB,
    min: 0,
    max: 1024 * MIB,
    meaning:
      'Maximum size of the journal of a workflow run, as sent in a delivery. A step that exceeds it is refused with 412, and the run fails. 0: no limit.',
  },
  logsPageDefault: {
    type: 'integer',
    default: 1000, // clients that send no count expect this many
    min: 1,
    max: 1000,
    meaning: 'Entries per page of logs if the request has no count.',
  },
} as const satisfies SettingRows;

const MESSAGE_SETTINGS = {
  retriesDefault: {
    type: 'integer',
    default: 3,
    min: 0,
    max: 999,
    meaning: 'Retries after the first attempt, if the message does not set a number.',
  },
  retriesMax: {
    type: 'integer',
    default: 999,
    min: 0,
    max: 100_000,
    meaning: 'Maximum retries that a message may request.',
  },
  delayMaxMs: {
    type: 'duration',
    default: 365 * DAY,
    min: 0,
    max: 3650 * DAY,
    meaning: 'Maximum delay of a message.',
  },
  timeoutMaxMs: {
    type: 'duration',
    default: 2 * HOUR,
    min: SECOND,
    max: DAY,
    meaning: 'Maximum timeout of an attempt, also used if the message sets none. Longer timeouts are reduced to it.',
  },
  deduplicationWindowMs: {
    type: 'duration',
    default: 10 * MINUTE,
    min: 0,
    max: 30 * DAY,
    meaning: 'How long a deduplication id is remembered.',
  },
  queuesMax: {
    type: 'integer',
    default: 100,
    min: 0,
    max: 1_000_000,
    meaning: 'Maximum number of queues per project. 0: no limit.',
  },
  queueParallelismMax: {
    type: 'integer',
    default: 100,
    min: 0,
    max: 10_000, // a pause or a resume moves all started messages in one transaction
    meaning: 'Maximum parallelism of a queue. 0: no limit.',
  },
  parallelismMax: {
    type: 'integer',
    default: 0, // on your own machine in_flight_max is the limit, and is shared fairly between endpoints
    min: 0,
    max: 1_000_000,
    meaning: 'Maximum attempts in flight per project, with or without a queue or flow-control key. 0: no limit.',
  },
  urlGroupsMax: {
    type: 'integer',
    default: 100,
    min: 0,
    max: 1_000_000,
    meaning: 'Maximum number of URL groups per project. 0: no limit.',
  },
  urlGroupEndpointsMax: {
    type: 'integer',
    default: 100, // a publish to the group saves this many messages at once
    min: 0,
    max: 100_000,
    meaning: 'Maximum number of endpoints per URL group. 0: no limit.',
  },
  forwardCloudEvents: {
    type: 'boolean',
    default: false,
    meaning: 'Forward the ce-* headers of a publish without requiring a prefix (CloudEvents in binary mode).',
  },
  schedulesMax: {
    type: 'integer',
    default: 1000,
    min: 0,
    max: 1_000_000,
    meaning: 'Maximum number of schedules per project. 0: no limit.',
  },
} as const satisfies SettingRows;

const DELIVERY_SETTINGS = {
  allowDestinations: {
    type: 'list',
    default: [],
    defaultInDev: ['loopback'],
    meaning:
      'Private destinations to allow: loopback, host names (*.suffix for all subdomains), addresses, CIDRs; all: everything, including metadata services.',
  },
  baggageHosts: {
    type: 'list',
    default: [], // it may contain personal data
    meaning:
      "Destination hosts that receive the publisher's baggage header with its trace (*.suffix for all subdomains).",
  },
  resolveAtPublish: {
    type: 'choice',
    choices: ['auto', 'yes', 'no'],
    default: 'auto',
    meaning: 'Refuse a publish whose host name cannot be resolved; auto: only while no private destination is allowed.',
  },
  verifyTls: {
    type: 'boolean',
    default: true,
    meaning: 'Verify the TLS certificates of endpoints.',
  },
  inFlightMax: {
    type: 'integer',
    default: 2048,
    min: 1,
    max: 1_000_000,
    meaning:
      'Delivery slots: maximum attempts in flight, silent ones not counted, shared among projects. Half of them are reserved for endpoints that have responded recently.',
  },
  silentMax: {
    type: 'integer',
    default: 16_384, // seven eighths of these, which one project may have, are 14,336
    min: 1,
    max: 1_000_000,
    meaning:
      'Maximum silent attempts (without a response for two seconds), which no longer use a delivery slot, shared among projects. Each uses a connection and about 20 KiB.',
  },
  inFlightPerOriginMax: {
    type: 'integer',
    default: 256, // an eighth of all slots: only eight hung endpoints at their limit can exhaust them
    min: 1,
    max: 1_000_000,
    meaning: 'Maximum attempts in flight per origin, so that a slow one leaves capacity for others.',
  },
  inFlightBytesMax: {
    type: 'bytes',
    default: 256 * MIB,
    min: MIB,
    max: 64 * GIB,
    meaning: 'Maximum body bytes of messages in flight, and as many of their responses.',
  },
  originsMax: {
    type: 'integer',
    default: 1024,
    min: 1,
    max: 100_000,
    meaning: 'Maximum number of origins with open connections. The least recently used one is closed first.',
  },
  responseBytesMax: {
    type: 'bytes',
    default: MIB,
    min: 0,
    max: 100 * MIB,
    meaning:
      "How much of an endpoint's response is read and kept. In workflows, where responses are results, at least the maximum body size of a message.",
  },
  failureResponseBytesMax: {
    type: 'bytes',
    default: 32 * MIB, // an error of 5 MiB arrives as message and stack, both escaped
    min: 0,
    max: 100 * MIB,
    meaning:
      'The same for a response that may fail a workflow run, so that its failure function gets all of it. At least the limit of other workflow responses.',
  },
  responseHeaderBytesMax: {
    type: 'bytes',
    default: 64 * 1024,
    min: 1024,
    max: MIB,
    meaning: "Maximum size of all headers of an endpoint's response. A response with more is malformed.",
  },
  lazyFetchBytes: {
    type: 'bytes',
    default: 3 * MIB,
    min: 0,
    max: 100 * MIB,
    meaning:
      'A workflow journal larger than this is not sent in the delivery but fetched by the endpoint, if its library supports that.',
  },
} as const satisfies SettingRows;

const RETENTION_SETTINGS = {
  deliveredGraceMs: {
    type: 'duration',
    default: 5 * SECOND,
    min: 0,
    max: DAY,
    meaning: 'How long a delivered message can still be fetched by its id.',
  },
  logRetentionMs: {
    type: 'duration',
    default: 14 * DAY,
    min: MINUTE,
    max: 3650 * DAY,
    meaning: 'How long logs are kept. On PostgreSQL, with a day or more, until all entries of their day are that old.',
  },
  dlqRetentionMs: {
    type: 'duration',
    default: 7 * DAY,
    min: MINUTE,
    max: 3650 * DAY,
    meaning: 'How long dead messages and failed runs are kept in the DLQ.',
  },
  retentionIntervalMs: {
    type: 'duration',
    default: MINUTE,
    min: SECOND,
    max: DAY,
    meaning: 'Interval between two rounds of deleting expired data.',
  },
} as const satisfies SettingRows;

const LOG_SETTINGS = {
  logFormat: {
    type: 'choice',
    choices: ['auto', 'json', 'pretty'],
    default: 'auto',
    meaning: 'Format of the server log; auto: pretty on a terminal and in waypost dev, otherwise JSON.',
  },
  logLevel: {
    type: 'choice',
    choices: ['debug', 'info', 'warn', 'error', 'silent'],
    default: 'info',
    meaning: 'Minimum level of events in the server log.',
  },
} as const satisfies SettingRows;

export const SETTINGS = {
  ...grouped('Server', SERVER_SETTINGS),
  ...grouped('Requests', REQUEST_SETTINGS),
  ...grouped('Messages', MESSAGE_SETTINGS),
  ...grouped('Delivery', DELIVERY_SETTINGS),
  ...grouped('Retention', RETENTION_SETTINGS),
  ...grouped('Operator events', OPERATOR_EVENT_SETTINGS),
  ...grouped('Logging', LOG_SETTINGS),
};

export type SettingName = keyof typeof SETTINGS;

/** The configuration: parsed once, and frozen. A function gets only the settings that it needs. */
export type Config = { readonly [Name in SettingName]: ValueOf<(typeof SETTINGS)[Name]> };

/** All rows, in order. */
export function listSettings(): { name: SettingName; setting: Setting }[] {
  return Object.entries(SETTINGS).map(([name, setting]) => ({ name: name as SettingName, setting }));
}
