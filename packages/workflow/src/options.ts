/** Resolves the settings of an endpoint from its options, and otherwise from its environment. */
import { LINGER_MS_MAX } from './call.ts';
import { WorkflowError } from './errors.ts';
import { Receiver } from './receiver.ts';
import { Server, serverOf } from './server.ts';
import type { QStashClientExtraConfig, WorkflowClient } from './types.ts';
import type { WorkflowServeOptions } from './workflow.ts';

type Environment = Record<string, string | undefined>;

export interface Endpoint<TInitialPayload> {
  url: string;
  env: Environment;
  server: Server;
  client: WorkflowClient;
  /** Throws `WorkflowError` if the request is not from the server. */
  verify(body: string, signature: string | null): Promise<void>;
  payloadOf(text: string): TInitialPayload;
}

export function endpointOf<TInitialPayload, TResult>(
  requestUrl: string,
  options: WorkflowServeOptions<TInitialPayload, TResult>,
): Endpoint<TInitialPayload> {
  const env = options.env ?? environment();
  const { qstashClient } = options;
  const client = qstashClient && 'http' in qstashClient ? qstashClient : undefined;
  const server = client
    ? serverOf(client)
    : serverFromEnvironment(env, qstashClient as QStashClientExtraConfig | undefined);
  const receiver = 'receiver' in options ? options.receiver : receiverOf(env);
  const baseUrl = options.baseUrl ?? env['UPSTASH_WORKFLOW_URL'];
  const url = urlOf(requestUrl, options.url, baseUrl);
  // The request's own URL proves nothing: proxies change it, and the sender chooses it.
  const signedFor = options.url || baseUrl ? { url } : {};
  return {
    url,
    env,
    server,
    client: client ?? {
      http: { baseUrl: server.baseUrl, authorization: `Bearer ${env['QSTASH_TOKEN'] ?? ''}` },
    },
    async verify(body, signature) {
      if (!receiver) return;
      try {
        if (signature === null) throw new WorkflowError('it has no Upstash-Signature');
        if (!(await receiver.verify({ body, signature, ...signedFor })))
          throw new WorkflowError('its signature is not valid');
      } catch (error) {
        const reason = error instanceof Error ? error.message : String(error);
        throw new WorkflowError(`The request does not come from the server: ${reason}.`);
      }
    },
    payloadOf: (text) => parsePayload(text, options),
  };
}

/** How long a call stays open without work, by default. */
const LINGER_MS_DEFAULT = 1_000;

/** Throws `WorkflowError` for an invalid value. */
export function lingerMsOf({ lingerMs = LINGER_MS_DEFAULT }: { lingerMs?: number }): number {
  if (Number.isInteger(lingerMs) && lingerMs >= 0 && lingerMs <= LINGER_MS_MAX) return lingerMs;
  throw new WorkflowError(`lingerMs must be an integer from 0 to ${LINGER_MS_MAX}, not ${lingerMs}.`);
}

/** The server that the standard environment variables name. */
export function serverFromEnvironment(env: Environment, config: QStashClientExtraConfig = {}): Server {
  if (!isDevelopment(env, config.devMode)) return new Server(env['QSTASH_URL'] ?? '', env['QSTASH_TOKEN'], config);
  const port = Number.parseInt(variable(env, 'QSTASH_DEV_PORT') ?? '', 10) || DEVELOPMENT_SERVER.port;
  return new Server(`http://127.0.0.1:${port}`, DEVELOPMENT_SERVER.token, config);
}

/** The fixed credentials of a development server, both of the hosted service and of `waypost dev`. */
const DEVELOPMENT_SERVER = {
  port: 8080,
  token: 'eyJVc2VySUQiOiJkZWZhdWx0VXNlciIsIlBhc3N3b3JkIjoiZGVmYXVsdFBhc3N3b3JkIn0=',
  currentSigningKey: 'sig_7kYjw48mhY7kAjqNGcy6cr29RJ6r',
  nextSigningKey: 'sig_5ZB6DVzB1wjE8S6rZ7eenA8Pdnhs',
};

/** Whether to use a development server, regardless of the given address, token and keys. */
function isDevelopment(env: Environment, devMode?: boolean): boolean {
  if (devMode !== undefined) return devMode;
  const text = variable(env, 'QSTASH_DEV') ?? '';
  if (text === 'true' || text === '1') return true;
  if (text === '' || text === 'false' || text === '0') return false;
  throw new WorkflowError(`QSTASH_DEV must be true, 1, false or 0, not '${text}'.`);
}

function variable(env: Environment, name: string): string | undefined {
  return env[name] ?? environment()[name];
}

const receivers = new Map<string, Receiver>();

/** Creates one receiver per pair of keys. */
function receiverOf(env: Environment): Receiver | undefined {
  const { QSTASH_CURRENT_SIGNING_KEY, QSTASH_NEXT_SIGNING_KEY } = env;
  if (!QSTASH_CURRENT_SIGNING_KEY || !QSTASH_NEXT_SIGNING_KEY) return undefined;
  const { currentSigningKey, nextSigningKey } = isDevelopment(env)
    ? DEVELOPMENT_SERVER
    : { currentSigningKey: QSTASH_CURRENT_SIGNING_KEY, nextSigningKey: QSTASH_NEXT_SIGNING_KEY };
  const id = `${currentSigningKey} ${nextSigningKey}`;
  const receiver = receivers.get(id) ?? new Receiver({ currentSigningKey, nextSigningKey });
  receivers.set(id, receiver);
  return receiver;
}

/** The environment of the process, on runtimes that have one. */
export function environment(): Environment {
  return (globalThis as { process?: { env: Environment } }).process?.env ?? {};
}

function urlOf(requestUrl: string, url = requestUrl, baseUrl?: string): string {
  const whole = baseUrl ? url.replace(/^https?:\/\/[^/]+/, baseUrl) : url;
  if (/^https?:\/\//.test(whole)) return whole;
  throw new WorkflowError(`The URL of the workflow must start with http:// or https://, not '${whole}'.`);
}

/** Parses JSON and checks it against the schema. Text that is not JSON is returned unchanged. */
function parsePayload<T, R>(text: string, { initialPayloadParser, schema }: WorkflowServeOptions<T, R>): T {
  if (initialPayloadParser) return initialPayloadParser(text);
  if (text === '') return undefined as T;
  try {
    const value: unknown = JSON.parse(text);
    return schema ? schema.parse(value) : (value as T);
  } catch (error) {
    if (error instanceof SyntaxError) return text as T;
    throw error;
  }
}
