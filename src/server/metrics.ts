/** Serves the metrics of this process to Prometheus at a separate address, without a token. */
import { createServer, type ServerResponse } from 'node:http';
import { messageOf } from '../admin/open-store.ts';
import type { Config } from '../config/table.ts';
import type { EventLog } from '../engine/ports.ts';
import { CannotStart } from '../system/cannot-start.ts';
import { systemClock } from '../system/system.ts';
import type { Reading } from '../telemetry/metrics/instruments.ts';
import { WorkerMetrics } from '../telemetry/metrics/worker-metrics.ts';

/** More connections than the programs that scrape one process need. */
const CONNECTIONS_MAX = 100;

/** Creates the metrics of one worker, before its store is opened. Returns undefined if metrics are disabled. */
export function openMetrics({ metricsAddress }: Pick<Config, 'metricsAddress'>): WorkerMetrics | undefined {
  return metricsAddress === '' ? undefined : new WorkerMetrics(systemClock);
}

export interface MetricsServer {
  /** The bound address, as `http://<address>:<port>/metrics`. */
  url: string;
  close(): Promise<void>;
}

/** Resolves to undefined if metrics are disabled. Throws `CannotStart`. */
export async function serveMetrics(
  { metricsAddress }: Pick<Config, 'metricsAddress'>,
  { read, log }: { read: () => Promise<readonly Reading[]>; log: EventLog },
): Promise<MetricsServer | undefined> {
  if (metricsAddress === '') return undefined;
  const { exposition } = await import('../telemetry/metrics/exposition.ts');
  /** The reading in progress, which concurrent requests share. */
  let reading: ReturnType<typeof exposition> | undefined;
  const respond = async (response: ServerResponse): Promise<void> => {
    reading ??= read()
      .then(exposition)
      .finally(() => {
        reading = undefined;
      });
    const { type, text } = await reading;
    response.writeHead(200, { 'content-type': type, 'content-length': Buffer.byteLength(text) }).end(text);
  };
  const server = createServer(({ method = '', url = '' }, response) => {
    const isKnown = ['GET', 'HEAD'].includes(method) && /^\/metrics(\?|$)/.test(url);
    const refuse = (error: unknown): void => {
      log.error('metrics_failed', { error: error instanceof Error ? (error.stack ?? error.message) : String(error) });
      response.writeHead(500).end();
    };
    if (isKnown) respond(response).catch(refuse);
    else response.writeHead(404, { 'content-type': 'text/plain' }).end('only GET /metrics is here\n');
  });
  server.maxConnections = CONNECTIONS_MAX;
  const { host, port } = parseAddress(metricsAddress);
  try {
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen({ host, port, exclusive: true }, resolve);
    });
  } catch (error) {
    throw new CannotStart(`WAYPOST_METRICS_ADDRESS: cannot listen on ${metricsAddress}: ${messageOf(error)}`, {
      cause: error,
    });
  }
  const bound = server.address();
  if (bound === null || typeof bound === 'string') throw new Error('a server on a port has an address');
  const named = bound.family === 'IPv6' ? `[${bound.address}]` : bound.address;
  return {
    url: `http://${named}:${bound.port}/metrics`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

/** Parses `9464`, `0.0.0.0:9464` and `[::]:9464`. */
function parseAddress(text: string): { host: string; port: number } {
  const at = text.lastIndexOf(':');
  const host = at < 0 ? '127.0.0.1' : text.slice(0, at).replace(/^\[(.*)\]$/, '$1');
  return { host, port: Number(text.slice(at + 1)) };
}
