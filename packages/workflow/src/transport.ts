/**
 * Sends HTTP requests: with `fetch`, or on Node with Node's own HTTP client, which takes a third of the time. Connections
 * are kept alive and reused.
 */

export interface OutgoingRequest {
  method: string;
  url: string;
  headers: Record<string, string>;
  body?: string;
}

export interface TextResponse {
  status: number;
  text: string;
}

/** Rejects when no complete response arrives. */
export type Transport = (request: OutgoingRequest) => Promise<TextResponse>;

/** How long a connection may be idle while a response is due. */
const IDLE_MAX_MS = 60_000;

export const sendByFetch: Transport = async ({ url, ...init }) => {
  const response = await fetch(url, init);
  return { status: response.status, text: await response.text() };
};

/** The members of `node:http` and `node:https` that are used. */
interface HttpModule {
  Agent: new (options: { keepAlive: boolean; scheduling: 'lifo'; timeout: number }) => object;
  request(
    url: string,
    options: { method: string; headers: Record<string, string | number>; agent: object },
    onResponse: (response: NodeIncomingMessage) => void,
  ): NodeClientRequest;
}

interface NodeClientRequest {
  on(event: 'error', listener: (error: Error) => void): void;
  on(event: 'timeout', listener: () => void): void;
  destroy(error: Error): void;
  end(body?: string): void;
}

interface NodeIncomingMessage {
  statusCode?: number;
  setEncoding(encoding: 'utf8'): void;
  on(event: 'data', listener: (text: string) => void): void;
  on(event: 'end', listener: () => void): void;
  on(event: 'error', listener: (error: Error) => void): void;
}

interface NodeProcess {
  release?: { name?: string };
  versions?: Record<string, string | undefined>;
  getBuiltinModule?: (name: string) => unknown;
}

/**
 * Returns undefined if the runtime is not Node. The modules are loaded at run time, so that no bundler tries to include
 * them.
 */
export function nodeTransport(silenceMaxMs = IDLE_MAX_MS): Transport | undefined {
  const { process } = globalThis as { process?: NodeProcess };
  const isNode = process?.release?.name === 'node' && !process.versions?.['bun'] && !process.versions?.['deno'];
  const http = isNode ? (process.getBuiltinModule?.('node:http') as HttpModule | undefined) : undefined;
  const https = isNode ? (process.getBuiltinModule?.('node:https') as HttpModule | undefined) : undefined;
  if (!http || !https) return undefined;
  const settings = { keepAlive: true, scheduling: 'lifo', timeout: silenceMaxMs } as const;
  const agents = { http: new http.Agent(settings), https: new https.Agent(settings) };
  return (outgoing) =>
    outgoing.url.startsWith('https:')
      ? sendByNode(https, agents.https, outgoing)
      : sendByNode(http, agents.http, outgoing);
}

function sendByNode(
  http: HttpModule,
  agent: object,
  { method, url, headers, body }: OutgoingRequest,
): Promise<TextResponse> {
  return new Promise((resolve, reject) => {
    const length = body === undefined ? undefined : { 'content-length': encoder.encode(body).length };
    const options = { method, headers: { ...headers, ...length }, agent };
    const request = http.request(url, options, (response) => {
      let text = '';
      response.setEncoding('utf8');
      response.on('data', (chunk) => {
        text += chunk;
      });
      response.on('end', () => resolve({ status: response.statusCode ?? 0, text }));
      response.on('error', reject); // the connection broke
    });
    request.on('error', reject);
    request.on('timeout', () => request.destroy(new Error('the server did not respond in time')));
    request.end(body);
  });
}

const encoder = new TextEncoder();

/** The fastest transport of this runtime. */
export const transport: Transport = nodeTransport() ?? sendByFetch;
