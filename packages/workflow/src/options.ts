/** What an endpoint is served with: its options, and where they are silent its environment. */
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
  /** Throws `WorkflowError` when the request is not the server's. */
  verify(body: string, signature: string | null): Promise<void>;
  payloadOf(text: string): TInitialPayload;
}

export function endpointOf<TInitialPayload, TResult>(
  requestUrl: string,
  options: WorkflowServeOptions<TInitialPayload, TResult>,
): Endpoint<TInitialPayload> {
  const env = options.env ?? environment();
  const { qstashClient } = options;
  const given = qstashClient && 'http' in qstashClient ? qstashClient : undefined;
  const server = given ? serverOf(given) : serverBy(env, qstashClient as QStashClientExtraConfig | undefined);
  const receiver = 'receiver' in options ? options.receiver : receiverOf(env);
  const baseUrl = options.baseUrl ?? env['UPSTASH_WORKFLOW_URL'];
  const url = urlOf(requestUrl, options.url, baseUrl);
  // The URL of the request alone says nothing: proxies change it, and whoever sends it chooses it.
  const signedFor = options.url || baseUrl ? { url } : {};
  return {
    url,
    env,
    server,
    client: given ?? {
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

/** A call stays so long for what comes next, if the options do not say. */
const LINGER_MS_DEFAULT = 1_000;

/** Throws `WorkflowError` when it is none. */
export function lingerMsOf({ lingerMs = LINGER_MS_DEFAULT }: { lingerMs?: number }): number {
  if (Number.isInteger(lingerMs) && lingerMs >= 0 && lingerMs <= LINGER_MS_MAX) return lingerMs;
  throw new WorkflowError(`lingerMs is a whole number from 0 to ${LINGER_MS_MAX}, and this one is ${lingerMs}.`);
}

/** The server by its usual variables. */
export function serverBy(env: Environment, config: QStashClientExtraConfig = {}): Server {
  if (!isDevelopment(env, config.devMode)) return new Server(env['QSTASH_URL'] ?? '', env['QSTASH_TOKEN'], config);
  const port = Number.parseInt(variable(env, 'QSTASH_DEV_PORT') ?? '', 10) || DEVELOPMENT.port;
  return new Server(`http://127.0.0.1:${port}`, DEVELOPMENT.token, config);
}

/** What a development server has, that of the hosted service as `waypost dev`. */
const DEVELOPMENT = {
  port: 8080,
  token: 'eyJVc2VySUQiOiJkZWZhdWx0VXNlciIsIlBhc3N3b3JkIjoiZGVmYXVsdFBhc3N3b3JkIn0=',
  currentSigningKey: 'sig_7kYjw48mhY7kAjqNGcy6cr29RJ6r',
  nextSigningKey: 'sig_5ZB6DVzB1wjE8S6rZ7eenA8Pdnhs',
};

/** Whether a development server is meant, whatever address, token and keys are given. */
function isDevelopment(env: Environment, devMode?: boolean): boolean {
  if (devMode !== undefined) return devMode;
  const text = variable(env, 'QSTASH_DEV') ?? '';
  if (text === 'true' || text === '1') return true;
  if (text === '' || text === 'false' || text === '0') return false;
  throw new WorkflowError(`QSTASH_DEV is true, 1, false or 0, and here it is '${text}'.`);
}

function variable(env: Environment, name: string): string | undefined {
  return env[name] ?? environment()[name];
}

const receivers = new Map<string, Receiver>();

/** Made once for each pair of keys. */
function receiverOf(env: Environment): Receiver | undefined {
  const { QSTASH_CURRENT_SIGNING_KEY, QSTASH_NEXT_SIGNING_KEY } = env;
  if (!QSTASH_CURRENT_SIGNING_KEY || !QSTASH_NEXT_SIGNING_KEY) return undefined;
  const { currentSigningKey, nextSigningKey } = isDevelopment(env)
    ? DEVELOPMENT
    : { currentSigningKey: QSTASH_CURRENT_SIGNING_KEY, nextSigningKey: QSTASH_NEXT_SIGNING_KEY };
  const id = `${currentSigningKey} ${nextSigningKey}`;
  const receiver = receivers.get(id) ?? new Receiver({ currentSigningKey, nextSigningKey });
  receivers.set(id, receiver);
  return receiver;
}

/** Of the process, on runtimes that have one. */
export function environment(): Environment {
  return (globalThis as { process?: { env: Environment } }).process?.env ?? {};
}

function urlOf(requestUrl: string, url = requestUrl, baseUrl?: string): string {
  const whole = baseUrl ? url.replace(/^https?:\/\/[^/]+/, baseUrl) : url;
  if (/^https?:\/\//.test(whole)) return whole;
  throw new WorkflowError(`The URL of the workflow begins with http:// or https://, and this one is '${whole}'.`);
}

/** JSON, checked by the schema; text that is no JSON stays as it is. */
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
