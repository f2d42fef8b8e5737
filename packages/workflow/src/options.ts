/** What an endpoint is served with: its options, and where they are silent its environment. */
import { WorkflowError } from './errors.ts';
import { Receiver } from './receiver.ts';
import { Server, serverOf } from './server.ts';
import type { WorkflowClient } from './types.ts';
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
  const server = options.qstashClient ? serverOf(options.qstashClient) : serverBy(env);
  const receiver = 'receiver' in options ? options.receiver : receiverOf(env);
  return {
    url: urlOf(requestUrl, options.url, options.baseUrl ?? env['UPSTASH_WORKFLOW_URL']),
    env,
    server,
    client: options.qstashClient ?? {
      http: { baseUrl: server.baseUrl, authorization: `Bearer ${env['QSTASH_TOKEN'] ?? ''}` },
    },
    async verify(body, signature) {
      if (!receiver) return;
      try {
        if (signature === null) throw new WorkflowError('it has no Upstash-Signature');
        if (!(await receiver.verify({ body, signature }))) throw new WorkflowError('its signature is not valid');
      } catch (error) {
        const reason = error instanceof Error ? error.message : String(error);
        throw new WorkflowError(`The request does not come from the server: ${reason}.`);
      }
    },
    payloadOf: (text) => parsePayload(text, options),
  };
}

/** The server by its usual variables. */
export function serverBy(env: Environment, headers?: Record<string, string>): Server {
  const isDevelopment = env['QSTASH_DEV'] === 'true' && !env['QSTASH_URL'];
  const baseUrl = env['QSTASH_URL'] ?? (isDevelopment ? 'http://127.0.0.1:8080' : '');
  return new Server(baseUrl, env['QSTASH_TOKEN'], headers);
}

const receivers = new Map<string, Receiver>();

/** Made once for each pair of keys. */
function receiverOf(env: Environment): Receiver | undefined {
  const currentSigningKey = env['QSTASH_CURRENT_SIGNING_KEY'];
  const nextSigningKey = env['QSTASH_NEXT_SIGNING_KEY'];
  if (!currentSigningKey || !nextSigningKey) return undefined;
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
