/** The settings of the group `Server`. The table of all of them is `table.ts`. */
import { HOUR, MINUTE, SECOND } from './measures.ts';
import type { SettingRows } from './setting.ts';

export const SERVER_SETTINGS = {
  host: {
    type: 'text',
    default: '127.0.0.1',
    meaning: 'Address to listen on; 0.0.0.0 or :: for all.',
  },
  port: {
    type: 'integer',
    default: 8080,
    min: 0,
    max: 65_535,
    alias: 'PORT',
    meaning: 'Port to listen on; 0 takes a free one.',
  },
  metricsAddress: {
    type: 'text',
    default: '',
    pattern: /^(\S+:)?\d{1,5}$/,
    rule: 'must be a port, or an address and a port, such as 9464 or 0.0.0.0:9464',
    meaning:
      'Where /metrics is served for Prometheus, without a token: a port of 127.0.0.1, or <address>:<port>; empty: nowhere.',
  },
  tracesEndpoint: {
    type: 'text',
    default: '',
    alias: 'OTEL_EXPORTER_OTLP_ENDPOINT',
    pattern: /^https?:\/\/./,
    rule: 'must be an http or https URL, such as http://127.0.0.1:4318',
    meaning: 'Collector of OpenTelemetry that is sent spans of what happens (OTLP over HTTP, protobuf); empty: nobody.',
  },
  workers: {
    type: 'integer',
    default: 1,
    min: 1,
    max: 64,
    meaning:
      'Workers in this process, on one port, each in a thread of its own if there are several. Each has the limits on requests a second, connections, memory and attempts in flight for itself.',
  },
  dataDir: {
    type: 'text',
    default: '.waypost',
    meaning: 'Folder of the database and of the encryption key.',
  },
  memory: {
    type: 'boolean',
    default: false,
    meaning: 'Keep everything in memory: nothing survives the end of the process.',
  },
  databaseUrl: {
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
    type: 'text',
    default: '',
    secret: true,
    pattern: /^(off$|postgres(ql)?:\/\/.)/,
    rule: 'must be postgres://..., or off',
    meaning:
      'Where to listen for notifications of PostgreSQL, if the database URL leads through a pooler that gives each transaction another connection; off: nowhere, workers then hear of each other with the next heartbeat; empty: the database URL.',
  },
  databasePoolMax: {
    type: 'integer',
    default: 10,
    min: 3, // two batches and a read
    max: 1000,
    meaning: 'Connections to PostgreSQL of each worker, at most.',
  },
  databasePrepare: {
    type: 'boolean',
    default: true,
    meaning: 'Keep statements prepared in PostgreSQL; false for poolers that cannot keep them apart.',
  },
  databaseTimeoutMs: {
    type: 'duration',
    default: 10 * SECOND,
    min: SECOND,
    max: 5 * MINUTE,
    meaning:
      'How long a statement in PostgreSQL may take, and the making of a connection; what it keeps waiting is refused then.',
  },
  encryptionKey: {
    type: 'text',
    default: '',
    secret: true,
    pattern: /^[A-Za-z0-9+/]{43}=$/,
    rule: 'must be 32 bytes in base64 (openssl rand -base64 32)',
    meaning:
      'Key that signing keys are encrypted with in the database, 32 bytes in base64; empty: encryption.key in the data folder.',
  },
  region: {
    type: 'text',
    default: '',
    meaning: 'Region label sent with each delivery; empty: the header is left out.',
  },
  trustedProxies: {
    type: 'list',
    default: [],
    meaning: "Addresses and CIDRs of proxies whose X-Forwarded-For is believed when a caller's address is recorded.",
  },
  proxyHeaders: {
    type: 'list',
    default: ['x-forwarded-*', 'x-real-ip', 'forwarded', 'via'],
    meaning: 'Headers added by your own proxies: not passed on when a publish forwards all of its headers.',
  },
  allowOrigins: {
    type: 'list',
    default: [],
    defaultInDev: ['https://console.upstash.com'], // the console whose links the official client prints
    meaning:
      'Origins of web pages that may call this server, such as https://console.example.com; pages of others are refused with 403.',
  },
  allowHosts: {
    type: 'list',
    default: [],
    meaning:
      'Names by which waypost dev may be called (*.suffix for all below) besides addresses, localhost, names without a dot and host.docker.internal; others are refused with 403, since web pages could use them. No limit to waypost serve.',
  },
  drainLimitMs: {
    type: 'duration',
    default: 10 * SECOND, // container platforms wait this long before they kill
    min: 0,
    max: HOUR,
    meaning:
      'How long a shutdown waits for running attempts; those cut off are made again at the next start, uncounted.',
  },
  workerTimeoutMs: {
    type: 'duration',
    default: 15 * SECOND, // longer than pauses of a busy machine or a restart of the database, shorter than people wait
    min: SECOND,
    max: HOUR,
    meaning:
      'On a database that several workers share: without a sign of life for so long, a worker counts as dead, and the others deliver what it had in flight.',
  },
} as const satisfies SettingRows;
