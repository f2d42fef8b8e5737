/** The thread that sends spans, seen from the worker whose spans they are. */
import { Worker } from 'node:worker_threads';

export interface ExporterOptions {
  /** Of the collector, without `/v1/traces`. */
  endpoint: string;
  /** Which worker tells of it. */
  instance: string;
  /** Of Waypost. */
  version: string;
}

export interface ExporterRequest {
  count: number;
  /** `Span[]` */
  json: string;
}

/** One for each request, in order. */
export interface ExporterReply {
  /** Spans of the request; absent: all that the thread had. */
  count?: number;
  /** Why the collector has not got them. */
  failure?: string;
  hasEnded?: true;
}

export interface ExporterThread {
  post(request: ExporterRequest): void;
  end(): Promise<unknown>;
}

export function startExporterThread(options: ExporterOptions, onReply: (reply: ExporterReply) => void): ExporterThread {
  // The sources run as .ts, the published package as .js.
  const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js';
  const worker = new Worker(new URL(`./exporter-worker.${extension}`, import.meta.url), { workerData: options });
  worker.unref();
  worker.on('message', onReply);
  worker.on('error', (error) => {
    onReply({ failure: error instanceof Error ? error.message : String(error), hasEnded: true });
  });
  return { post: (request) => worker.postMessage(request), end: () => worker.terminate() };
}
