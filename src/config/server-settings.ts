/** The settings of the group `Server`. The table of all settings is `table.ts`. */
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
    meaning: 'Port to listen on; 0 picks a free one.',
  },
  metricsAddress: {
    type: 'text',
    default: '',
    pattern: /^(\S+:)?\d{1,5}$/,
    rule: 'must be a port, or an address and a port, such as 9464 or 0.0.0.0:9464',
    meaning:
      'Where /metrics is served for Prometheus, without a token: a port on 127.0.0.1, or <address>:<port>. Empty: disabled.',
  },
  tracesEndpoint: {
    type: 'text',
    default: '',
    alias: 'OTEL_EXPORTER_OTLP_ENDPOINT',
    pattern: /^https?:\/\/./,
    rule: 'must be an http or https URL, such as http://127.0.0.1:4318',
    meaning: 'OpenTelemetry collector that receives spans (OTLP over HTTP, protobuf). Empty: disabled.',
  },
  workers: {
    type: 'integer',
    default: 1,
    min: 1,
    max: 64,
    meaning:
      'Workers in this process, on one port; if there are several, each has its own thread. The limits on requests a second, connections, memory and attempts in flight apply to each.',
  },
  dataDir: {
    type: 'text',
    default: '.waypost',
    meaning: 'Folder of the database and the encryption key.',
  },
  memory: {
    type: 'boolean',
    default: false,
    meaning: 'Keep everything in memory. All data is lost when the process ends.',
  },
  databaseUrl: {
    type: 'text',
    default: '',
    secret: true,
    alias: 'DATABASE_URL',
    pattern: /^(sqlite:.|postgres(ql)?:\/\/.)/,
    rule: 'must be sqlite:<path> or postgres://<user>:<password>@<host>:<port>/<database>',
    meaning:
      'Database: sqlite:<path> for a single process, or postgres://<user>:<password>@<host>:<port>/<database> for any number of workers. Empty: waypost.db in the data folder.',
  },
  databaseListenUrl: {
    type: 'text',
    default: '',
    secret: true,
    pattern: /^(off$|postgres(ql)?:\/\/.)/,
    rule: 'must be postgres://..., or off',
    meaning:
      "Where to listen for PostgreSQL notifications, if the database URL leads to a pooler in transaction mode; off: do not listen, workers then learn of each other's due messages with the next heartbeat. Empty: the database URL.",
  },
  databasePoolMax: {
    type: 'integer',
    default: 10,
    min: 3, // two batches and a read
    max: 1000,
    meaning: 'Maximum connections to PostgreSQL per worker.',
  },
  databasePrepare: {
    type: 'boolean',
    default: true,
    meaning: 'Use prepared statements in PostgreSQL; false for poolers that do not support them.',
  },
  databaseTimeoutMs: {
    type: 'duration',
    default: 10 * SECOND,
    min: SECOND,
    max: 5 * MINUTE,
    meaning:
      'Timeout of PostgreSQL statements and of opening a connection. Requests that depend on one that timed out are refused.',
  },
  encryptionKey: {
    type: 'text',
    default: '',
    secret: true,
    pattern: /^[A-Za-z0-9+/]{43}=$/,
    rule: 'must be 32 bytes in base64 (openssl rand -base64 32)',
    meaning:
      'Key with which signing keys are encrypted in the database, 32 bytes in base64. Empty: encryption.key in the data folder.',
  },
  region: {
    type: 'text',
    default: '',
    meaning: 'Region label sent with each delivery. Empty: no header.',
  },
  trustedProxies: {
    type: 'list',
    default: [],
    meaning: "Addresses and CIDRs of proxies whose X-Forwarded-For is trusted for the caller's address.",
  },
  proxyHeaders: {
    type: 'list',
    default: ['x-forwarded-*', 'x-real-ip', 'forwarded', 'via'],
    meaning: 'Headers that your proxies add: not forwarded when a publish forwards all of its headers.',
  },
  allowOrigins: {
    type: 'list',
    default: [],
    defaultInDev: ['https://console.upstash.com'], // the console whose links the official client prints
    meaning:
      'Origins of web pages that may call this server, such as https://console.example.com. Pages of other origins get 403.',
  },
  allowHosts: {
    type: 'list',
    default: [],
    meaning:
      'Host names by which waypost dev may be called (*.suffix for all subdomains), besides addresses, localhost, names without a dot and host.docker.internal. Others get 403, because web pages could use them (DNS rebinding). Not used by waypost serve.',
  },
  docsUrl: {
    type: 'text',
    default: '', // package.json has no "homepage" yet; a test compares the two
    pattern: /^https?:\/\/[^\s?#]+$/,
    rule: 'must be an http or https URL without query and fragment, such as https://waypost.example.com',
    meaning:
      'Address of the documentation site, for links in the console and in messages; empty: messages name the file in the folder docs.',
  },
  drainLimitMs: {
    type: 'duration',
    default: 10 * SECOND, // container platforms wait this long before they kill
    min: 0,
    max: HOUR,
    meaning:
      'How long a shutdown waits for attempts in flight. Attempts that are cut off are repeated at the next start and not counted.',
  },
  workerTimeoutMs: {
    type: 'duration',
    default: 15 * SECOND, // longer than a pause of a busy machine or a restart of the database, shorter than people are willing to wait
    min: SECOND,
    max: HOUR,
    meaning:
      'With several workers on a database: a worker without a heartbeat for this long is expired, and the others deliver what it had in flight.',
  },
} as const satisfies SettingRows;
