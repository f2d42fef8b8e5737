/**
 * Every setting, once. The parser, `--help`, docs/settings.md and `waypost config` are made from this table. A comment
 * gives the reason for a default that is not obvious.
 */
import type { Setting, ValueOf } from './setting.ts';

const MIB = 1024 ** 2;
const GIB = 1024 ** 3;
const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

export const SETTINGS = {
  host: {
    group: 'Server',
    type: 'text',
    default: '127.0.0.1',
    meaning: 'Address to listen on; 0.0.0.0 or :: for all.',
  },
  port: {
    group: 'Server',
    type: 'integer',
    default: 8080,
    min: 0,
    max: 65_535,
    alias: 'PORT',
    meaning: 'Port to listen on; 0 takes a free one.',
  },
  workers: {
    group: 'Server',
    type: 'integer',
    default: 1,
    min: 1,
    max: 64,
    meaning:
      'Workers in this process, on one port, each in a thread of its own if there are several. Each has the limits on requests a second, connections, memory and attempts in flight for itself.',
  },
  dataDir: {
    group: 'Server',
    type: 'text',
    default: '.waypost',
    meaning: 'Folder of the database and of the encryption key.',
  },
  memory: {
    group: 'Server',
    type: 'boolean',
    default: false,
    meaning: 'Keep everything in memory: nothing survives the end of the process.',
  },
  databaseUrl: {
    group: 'Server',
    type: 'text',
    default: '',
    secret: true,
    alias: 'DATABASE_URL',
    pattern: /^(sqlite:.|postgres(ql)?:\/\/.)/,
    rule: 'must be sqlite:<path> or postgres://<user>:<password>@<host>:<port>/<database>',
    meaning:
      'Database to use: sqlite:<path> for this machine alone, or postgres://<user>:<password>@<host>:<port>/<database> for any number of workers; empty: waypost.db in the data folder.',
  },
  databaseListenUrl: {
    group: 'Server',
    type: 'text',
    default: '',
    secret: true,
    pattern: /^(off$|postgres(ql)?:\/\/.)/,
    rule: 'must be postgres://..., or off',
    meaning:
      'Where to listen for notifications of PostgreSQL, if the database URL leads through a pooler that gives each transaction another connection; off: nowhere, workers then hear of each other with the next heartbeat; empty: the database URL.',
  },
  databasePoolMax: {
    group: 'Server',
    type: 'integer',
    default: 10,
    min: 3, // two batches and a read
    max: 1000,
    meaning: 'Connections to PostgreSQL of each worker, at most.',
  },
  databasePrepare: {
    group: 'Server',
    type: 'boolean',
    default: true,
    meaning: 'Keep statements prepared in PostgreSQL; false for poolers that cannot keep them apart.',
  },
  databaseTimeoutMs: {
    group: 'Server',
    type: 'duration',
    default: 10 * SECOND,
    min: SECOND,
    max: 5 * MINUTE,
    meaning:
      'How long a statement in PostgreSQL may take, and the making of a connection; what it keeps waiting is refused then.',
  },
  encryptionKey: {
    group: 'Server',
    type: 'text',
    default: '',
    secret: true,
    pattern: /^[A-Za-z0-9+/]{43}=$/,
    rule: 'must be 32 bytes in base64 (openssl rand -base64 32)',
    meaning:
      'Key that signing keys are encrypted with in the database, 32 bytes in base64; empty: encryption.key in the data folder.',
  },
  region: {
    group: 'Server',
    type: 'text',
    default: '',
    meaning: 'Region label sent with each delivery; empty: the header is left out.',
  },
  trustedProxies: {
    group: 'Server',
    type: 'list',
    default: [],
    meaning: "Addresses and CIDRs of proxies whose X-Forwarded-For is believed when a caller's address is recorded.",
  },
  proxyHeaders: {
    group: 'Server',
    type: 'list',
    default: ['x-forwarded-*', 'x-real-ip', 'forwarded', 'via'],
    meaning: 'Headers added by your own proxies: not passed on when a publish forwards all of its headers.',
  },
  allowOrigins: {
    group: 'Server',
    type: 'list',
    default: [],
    defaultInDev: ['https://console.upstash.com'], // the console whose links the official client prints
    meaning:
      'Origins of web pages that may call this server, such as https://console.example.com; pages of others are refused with 403.',
  },
  allowHosts: {
    group: 'Server',
    type: 'list',
    default: [],
    meaning:
      'Names by which waypost dev may be called (*.suffix for all below) besides addresses, localhost, names without a dot and host.docker.internal; others are refused with 403, since web pages could use them. No limit to waypost serve.',
  },
  drainLimitMs: {
    group: 'Server',
    type: 'duration',
    default: 10 * SECOND, // container platforms wait this long before they kill
    min: 0,
    max: HOUR,
    meaning:
      'How long a shutdown waits for running attempts; those cut off are made again at the next start, uncounted.',
  },
  workerTimeoutMs: {
    group: 'Server',
    type: 'duration',
    default: 15 * SECOND, // longer than pauses of a busy machine or a restart of the database, shorter than people wait
    min: SECOND,
    max: HOUR,
    meaning:
      'On a database that several workers share: without a sign of life for so long, a worker counts as dead, and the others deliver what it had in flight.',
  },

  messageBytesMax: {
    group: 'Requests',
    type: 'bytes',
    default: 10 * MIB,
    min: 1,
    max: 100 * MIB,
    meaning: 'Size of the body of one message; larger ones are refused with 413.',
  },
  batchBytesMax: {
    group: 'Requests',
    type: 'bytes',
    default: 100 * MIB,
    min: 1,
    max: GIB,
    meaning: 'Size of one batch request.',
  },
  batchItemsMax: {
    group: 'Requests',
    type: 'integer',
    default: 1000,
    min: 1,
    max: 100_000,
    meaning: 'Messages in one batch request.',
  },
  requestMemoryBytesMax: {
    group: 'Requests',
    type: 'bytes',
    default: 256 * MIB,
    min: MIB,
    max: 64 * GIB,
    meaning: 'Request bodies held in memory at a time; requests beyond it are answered 503.',
  },
  headerBytesMax: {
    group: 'Requests',
    type: 'bytes',
    default: 64 * 1024,
    min: 1024,
    max: MIB,
    meaning: 'Size of all headers of one request together; more is refused with 431.',
  },
  connectionsMax: {
    group: 'Requests',
    type: 'integer',
    default: 10_000,
    min: 1,
    max: 1_000_000,
    meaning: 'Open connections of callers.',
  },
  headersTimeoutMs: {
    group: 'Requests',
    type: 'duration',
    default: 10 * SECOND, // a human typing is slower, a mobile link is not
    min: SECOND,
    max: HOUR,
    meaning: 'Time for a caller to send the headers of a request.',
  },
  requestTimeoutMs: {
    group: 'Requests',
    type: 'duration',
    default: MINUTE,
    min: SECOND,
    max: DAY,
    meaning: 'Time for a caller to send a whole request.',
  },
  keepAliveTimeoutMs: {
    group: 'Requests',
    type: 'duration',
    default: 75 * SECOND, // longer than in common balancers, so that they close first and use no closed connection
    min: SECOND,
    max: DAY,
    meaning: 'How long an idle connection of a caller is kept open.',
  },
  publishDelayTargetMs: {
    group: 'Requests',
    type: 'duration',
    default: 500, // longer than a commit takes, with standbys in other regions and pauses of a disk
    min: 10,
    max: MINUTE,
    meaning:
      'How long publishes may wait to be stored; while all of a project have waited longer, the newest of it are answered 503 with Retry-After.',
  },
  requestsPerSecondMax: {
    group: 'Requests',
    type: 'integer',
    default: 0,
    min: 0,
    max: 1_000_000,
    meaning:
      'Requests of a project in one second, publish, enqueue and batch excepted; more are answered 429; 0: any number.',
  },
  messagesPerDayMax: {
    group: 'Requests',
    type: 'integer',
    default: 0,
    min: 0,
    max: 1_000_000_000_000,
    meaning:
      'Messages of a project on one day (UTC), callbacks and the like included; publishes beyond it are answered 429; 0: any number.',
  },
  journalBytesMax: {
    group: 'Requests',
    type: 'bytes',
    default: 50 * MIB,
    min: 0,
    max: 1024 * MIB,
    meaning:
      'Size of the journal of one workflow run, as a delivery shows it; a step beyond it is refused with 412, and the run fails; 0: any size.',
  },
  logsPageDefault: {
    group: 'Requests',
    type: 'integer',
    default: 1000, // clients that send no count expect this many
    min: 1,
    max: 1000,
    meaning: 'Entries on a page of logs when the request names no count.',
  },

  retriesDefault: {
    group: 'Messages',
    type: 'integer',
    default: 3,
    min: 0,
    max: 999,
    meaning: 'Retries after the first attempt of a message that does not say how many.',
  },
  retriesMax: {
    group: 'Messages',
    type: 'integer',
    default: 999,
    min: 0,
    max: 100_000,
    meaning: 'Retries that a message may ask for.',
  },
  delayMaxMs: {
    group: 'Messages',
    type: 'duration',
    default: 365 * DAY,
    min: 0,
    max: 3650 * DAY,
    meaning: 'How far ahead a message may be delayed.',
  },
  timeoutMaxMs: {
    group: 'Messages',
    type: 'duration',
    default: 2 * HOUR,
    min: SECOND,
    max: DAY,
    meaning: 'Time for one attempt, and for those of messages that do not name a shorter one.',
  },
  deduplicationWindowMs: {
    group: 'Messages',
    type: 'duration',
    default: 10 * MINUTE,
    min: 0,
    max: 30 * DAY,
    meaning: 'How long a deduplication id is remembered.',
  },
  queuesMax: {
    group: 'Messages',
    type: 'integer',
    default: 100,
    min: 0,
    max: 1_000_000,
    meaning: 'Queues that a project may have; 0: any number.',
  },
  queueParallelismMax: {
    group: 'Messages',
    type: 'integer',
    default: 100,
    min: 0,
    max: 10_000, // a pause or a resume moves all started messages in one transaction
    meaning: 'Parallelism that a queue may have; 0: any.',
  },
  parallelismMax: {
    group: 'Messages',
    type: 'integer',
    default: 0, // on your own machine in_flight_max is the limit, and is shared fairly between endpoints
    min: 0,
    max: 1_000_000,
    meaning: 'Attempts in flight that a project may have, with or without a queue or flow-control key; 0: any number.',
  },
  urlGroupsMax: {
    group: 'Messages',
    type: 'integer',
    default: 100,
    min: 0,
    max: 1_000_000,
    meaning: 'URL groups that a project may have; 0: any number.',
  },
  urlGroupEndpointsMax: {
    group: 'Messages',
    type: 'integer',
    default: 100, // a publish to the group makes and saves this many messages at once
    min: 0,
    max: 100_000,
    meaning: 'Endpoints that a URL group may have; 0: any number.',
  },
  schedulesMax: {
    group: 'Messages',
    type: 'integer',
    default: 1000,
    min: 0,
    max: 1_000_000,
    meaning: 'Schedules that a project may have; 0: any number.',
  },

  allowDestinations: {
    group: 'Delivery',
    type: 'list',
    default: [],
    defaultInDev: ['loopback'],
    meaning:
      'Private destinations that are allowed: loopback, host names (*.suffix for all below), addresses, CIDRs; all: everything, metadata services included.',
  },
  resolveAtPublish: {
    group: 'Delivery',
    type: 'choice',
    choices: ['auto', 'yes', 'no'],
    default: 'auto',
    meaning: 'Refuse a publish whose host name cannot be resolved; auto: only while no private destination is allowed.',
  },
  verifyTls: {
    group: 'Delivery',
    type: 'boolean',
    default: true,
    meaning: "Check endpoints' TLS certificates.",
  },
  inFlightMax: {
    group: 'Delivery',
    type: 'integer',
    default: 2048,
    min: 1,
    max: 1_000_000,
    meaning:
      'Attempts in flight at a time, shared among projects; half of them are only for endpoints that have answered lately.',
  },
  inFlightPerOriginMax: {
    group: 'Delivery',
    type: 'integer',
    default: 256, // an eighth of all: eight hung endpoints must be full before nothing is left for others
    min: 1,
    max: 1_000_000,
    meaning: 'Attempts in flight to one origin at a time, so that a slow one leaves room for the others.',
  },
  inFlightBytesMax: {
    group: 'Delivery',
    type: 'bytes',
    default: 256 * MIB,
    min: MIB,
    max: 64 * GIB,
    meaning: 'Body bytes of messages in flight at a time, and as many of the answers to them.',
  },
  originsMax: {
    group: 'Delivery',
    type: 'integer',
    default: 1024,
    min: 1,
    max: 100_000,
    meaning: 'Origins to which connections are kept open; the longest unused one gives way.',
  },
  responseBytesMax: {
    group: 'Delivery',
    type: 'bytes',
    default: MIB,
    min: 0,
    max: 100 * MIB,
    meaning:
      "How much of an endpoint's answer is read and kept; in workflows, where answers are results, as much as a message may have, if that is more.",
  },
  failureResponseBytesMax: {
    group: 'Delivery',
    type: 'bytes',
    default: 32 * MIB, // an error of 5 MiB comes as message and stack, escaped
    min: 0,
    max: 100 * MIB,
    meaning:
      "The same for an answer that a workflow's run may fail with, so that its failure function gets all of it; at least what other answers in workflows have.",
  },
  responseHeaderBytesMax: {
    group: 'Delivery',
    type: 'bytes',
    default: 64 * 1024,
    min: 1024,
    max: MIB,
    meaning: "Size of all headers of an endpoint's answer; an answer with more counts as malformed.",
  },
  lazyFetchBytes: {
    group: 'Delivery',
    type: 'bytes',
    default: 3 * MIB,
    min: 0,
    max: 100 * MIB,
    meaning:
      'A larger journal of a workflow run is not sent but left to be fetched, by endpoints whose library can do that.',
  },

  deliveredGraceMs: {
    group: 'Keeping',
    type: 'duration',
    default: 5 * SECOND,
    min: 0,
    max: DAY,
    meaning: 'How long a delivered message can still be fetched by its id.',
  },
  logRetentionMs: {
    group: 'Keeping',
    type: 'duration',
    default: 14 * DAY,
    min: MINUTE,
    max: 3650 * DAY,
    meaning:
      'How long logs are kept; on PostgreSQL, if that is a day or more, until all entries of their day are that old.',
  },
  dlqRetentionMs: {
    group: 'Keeping',
    type: 'duration',
    default: 7 * DAY,
    min: MINUTE,
    max: 3650 * DAY,
    meaning: 'How long dead messages are kept.',
  },
  retentionIntervalMs: {
    group: 'Keeping',
    type: 'duration',
    default: MINUTE,
    min: SECOND,
    max: DAY,
    meaning: 'Pause between two rounds of dropping what is past its time.',
  },

  logFormat: {
    group: 'Logging',
    type: 'choice',
    choices: ['auto', 'json', 'pretty'],
    default: 'auto',
    meaning: "Form of the server's own log; auto: pretty on a terminal and in waypost dev, else JSON.",
  },
  logLevel: {
    group: 'Logging',
    type: 'choice',
    choices: ['debug', 'info', 'warn', 'error', 'silent'],
    default: 'info',
    meaning: "The least important events that the server's own log shows.",
  },
} as const satisfies Record<string, Setting>;

export type SettingName = keyof typeof SETTINGS;

/** The configuration: parsed once, and frozen. A function gets only the settings that it needs. */
export type Config = { readonly [Name in SettingName]: ValueOf<(typeof SETTINGS)[Name]> };

/** All rows, in order. */
export function listSettings(): { name: SettingName; setting: Setting }[] {
  return Object.entries(SETTINGS).map(([name, setting]) => ({ name: name as SettingName, setting }));
}
