/**
 * Every setting, once. The parser, `--help`, docs/settings.md and `waypost config` are made from this table. A comment
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
    meaning: 'Size of the body of one message; larger ones are refused with 413, and with 412 in a running workflow.',
  },
  batchBytesMax: {
    type: 'bytes',
    default: 100 * MIB,
    min: 1,
    max: GIB,
    meaning: 'Size of one batch request.',
  },
  batchItemsMax: {
    type: 'integer',
    default: 1000,
    min: 1,
    max: 100_000,
    meaning: 'Messages in one batch request, and steps of a workflow run that begin side by side.',
  },
  requestMemoryBytesMax: {
    type: 'bytes',
    default: 256 * MIB,
    min: MIB,
    max: 64 * GIB,
    meaning:
      'Request bodies held in memory at a time, of one project up to seven eighths of it; requests beyond it are answered 503. JSON counts twice.',
  },
  headerBytesMax: {
    type: 'bytes',
    default: 64 * 1024,
    min: 1024,
    max: MIB,
    meaning: 'Size of all headers of one request together; more is refused with 431.',
  },
  connectionsMax: {
    type: 'integer',
    default: 10_000,
    min: 1,
    max: 1_000_000,
    meaning: 'Open connections of callers.',
  },
  headersTimeoutMs: {
    type: 'duration',
    default: 10 * SECOND, // a human typing is slower, a mobile link is not
    min: SECOND,
    max: HOUR,
    meaning: 'Time for a caller to send the headers of a request.',
  },
  requestTimeoutMs: {
    type: 'duration',
    default: MINUTE,
    min: SECOND,
    max: DAY,
    meaning: 'Time for a caller to send a whole request.',
  },
  keepAliveTimeoutMs: {
    type: 'duration',
    default: 75 * SECOND, // longer than in common balancers, so that they close first and use no closed connection
    min: SECOND,
    max: DAY,
    meaning: 'How long an idle connection of a caller is kept open.',
  },
  publishDelayTargetMs: {
    type: 'duration',
    default: 500, // longer than a commit takes, with standbys in other regions and pauses of a disk
    min: 10,
    max: MINUTE,
    meaning:
      'How long publishes may wait to be stored; while all of a project have waited longer, the newest of it are answered 503 with Retry-After.',
  },
  requestsPerSecondMax: {
    type: 'integer',
    default: 0,
    min: 0,
    max: 1_000_000,
    meaning:
      'Requests of a project in one second, publish, enqueue and batch excepted; more are answered 429; 0: any number.',
  },
  messagesPerDayMax: {
    type: 'integer',
    default: 0,
    min: 0,
    max: 1_000_000_000_000,
    meaning:
      'Messages of a project on one day (UTC), callbacks and the like included; publishes beyond it are answered 429; 0: any number.',
  },
  journalBytesMax: {
    type: 'bytes',
    default: 50 * MIB,
    min: 0,
    max: 1024 * MIB,
    meaning:
      'Size of the journal of one workflow run, as a delivery shows it; a step beyond it is refused with 412, and the run fails; 0: any size.',
  },
  logsPageDefault: {
    type: 'integer',
    default: 1000, // clients that send no count expect this many
    min: 1,
    max: 1000,
    meaning: 'Entries on a page of logs when the request names no count.',
  },
} as const satisfies SettingRows;

const MESSAGE_SETTINGS = {
  retriesDefault: {
    type: 'integer',
    default: 3,
    min: 0,
    max: 999,
    meaning: 'Retries after the first attempt of a message that does not say how many.',
  },
  retriesMax: {
    type: 'integer',
    default: 999,
    min: 0,
    max: 100_000,
    meaning: 'Retries that a message may ask for.',
  },
  delayMaxMs: {
    type: 'duration',
    default: 365 * DAY,
    min: 0,
    max: 3650 * DAY,
    meaning: 'How far ahead a message may be delayed.',
  },
  timeoutMaxMs: {
    type: 'duration',
    default: 2 * HOUR,
    min: SECOND,
    max: DAY,
    meaning: 'Longest time for one attempt, and the time where a message names none; a longer one is lowered to it.',
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
    meaning: 'Queues that a project may have; 0: any number.',
  },
  queueParallelismMax: {
    type: 'integer',
    default: 100,
    min: 0,
    max: 10_000, // a pause or a resume moves all started messages in one transaction
    meaning: 'Parallelism that a queue may have; 0: any.',
  },
  parallelismMax: {
    type: 'integer',
    default: 0, // on your own machine in_flight_max is the limit, and is shared fairly between endpoints
    min: 0,
    max: 1_000_000,
    meaning: 'Attempts in flight that a project may have, with or without a queue or flow-control key; 0: any number.',
  },
  urlGroupsMax: {
    type: 'integer',
    default: 100,
    min: 0,
    max: 1_000_000,
    meaning: 'URL groups that a project may have; 0: any number.',
  },
  urlGroupEndpointsMax: {
    type: 'integer',
    default: 100, // a publish to the group makes and saves this many messages at once
    min: 0,
    max: 100_000,
    meaning: 'Endpoints that a URL group may have; 0: any number.',
  },
  forwardCloudEvents: {
    type: 'boolean',
    default: false,
    meaning: 'Forward ce-* headers of a publish without the prefix for it (CloudEvents in binary mode).',
  },
  schedulesMax: {
    type: 'integer',
    default: 1000,
    min: 0,
    max: 1_000_000,
    meaning: 'Schedules that a project may have; 0: any number.',
  },
} as const satisfies SettingRows;

const DELIVERY_SETTINGS = {
  allowDestinations: {
    type: 'list',
    default: [],
    defaultInDev: ['loopback'],
    meaning:
      'Private destinations that are allowed: loopback, host names (*.suffix for all below), addresses, CIDRs; all: everything, metadata services included.',
  },
  baggageHosts: {
    type: 'list',
    default: [], // it may hold what the publisher knows of a person
    meaning: "Hosts of destinations that get the publisher's baggage header with its trace (*.suffix for all below).",
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
    meaning: "Check endpoints' TLS certificates.",
  },
  inFlightMax: {
    type: 'integer',
    default: 2048,
    min: 1,
    max: 1_000_000,
    meaning:
      'Delivery slots: attempts that are being sent or about to be answered, shared among projects; half are only for endpoints that have answered lately.',
  },
  silentMax: {
    type: 'integer',
    default: 16_384, // seven eighths of these, which one project may have, are 14,336
    min: 1,
    max: 1_000_000,
    meaning:
      'Attempts without an answer for two seconds, which give up their delivery slots, at a time, shared among projects. Each takes a connection and about 20 KiB.',
  },
  inFlightPerOriginMax: {
    type: 'integer',
    default: 256, // an eighth of all: eight hung endpoints must be full before nothing is left for others
    min: 1,
    max: 1_000_000,
    meaning: 'Attempts in flight to one origin at a time, so that a slow one leaves room for the others.',
  },
  inFlightBytesMax: {
    type: 'bytes',
    default: 256 * MIB,
    min: MIB,
    max: 64 * GIB,
    meaning: 'Body bytes of messages in flight at a time, and as many of the answers to them.',
  },
  originsMax: {
    type: 'integer',
    default: 1024,
    min: 1,
    max: 100_000,
    meaning: 'Origins to which connections are kept open; the longest unused one gives way.',
  },
  responseBytesMax: {
    type: 'bytes',
    default: MIB,
    min: 0,
    max: 100 * MIB,
    meaning:
      "How much of an endpoint's answer is read and kept; in workflows, where answers are results, as much as a message may have, if that is more.",
  },
  failureResponseBytesMax: {
    type: 'bytes',
    default: 32 * MIB, // an error of 5 MiB comes as message and stack, escaped
    min: 0,
    max: 100 * MIB,
    meaning:
      "The same for an answer that a workflow's run may fail with, so that its failure function gets all of it; at least what other answers in workflows have.",
  },
  responseHeaderBytesMax: {
    type: 'bytes',
    default: 64 * 1024,
    min: 1024,
    max: MIB,
    meaning: "Size of all headers of an endpoint's answer; an answer with more counts as malformed.",
  },
  lazyFetchBytes: {
    type: 'bytes',
    default: 3 * MIB,
    min: 0,
    max: 100 * MIB,
    meaning:
      'A larger journal of a workflow run is not sent but left to be fetched, by endpoints whose library can do that.',
  },
} as const satisfies SettingRows;

const KEEPING_SETTINGS = {
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
    meaning:
      'How long logs are kept; on PostgreSQL, if that is a day or more, until all entries of their day are that old.',
  },
  dlqRetentionMs: {
    type: 'duration',
    default: 7 * DAY,
    min: MINUTE,
    max: 3650 * DAY,
    meaning: 'How long dead messages are kept.',
  },
  retentionIntervalMs: {
    type: 'duration',
    default: MINUTE,
    min: SECOND,
    max: DAY,
    meaning: 'Pause between two rounds of dropping what is past its time.',
  },
} as const satisfies SettingRows;

const LOG_SETTINGS = {
  logFormat: {
    type: 'choice',
    choices: ['auto', 'json', 'pretty'],
    default: 'auto',
    meaning: "Form of the server's own log; auto: pretty on a terminal and in waypost dev, else JSON.",
  },
  logLevel: {
    type: 'choice',
    choices: ['debug', 'info', 'warn', 'error', 'silent'],
    default: 'info',
    meaning: "The least important events that the server's own log shows.",
  },
} as const satisfies SettingRows;

export const SETTINGS = {
  ...grouped('Server', SERVER_SETTINGS),
  ...grouped('Requests', REQUEST_SETTINGS),
  ...grouped('Messages', MESSAGE_SETTINGS),
  ...grouped('Delivery', DELIVERY_SETTINGS),
  ...grouped('Keeping', KEEPING_SETTINGS),
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
