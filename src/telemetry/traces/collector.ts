/** Sends encoded spans to a collector over HTTP. OpenTelemetry's exporter compresses, retries and times out. */
import { createOtlpHttpExportDelegate, httpAgentFactoryFromOptions } from '@opentelemetry/otlp-exporter-base/node-http';
import { ProtobufTraceSerializer } from '@opentelemetry/otlp-transformer';

type HttpOptions = Parameters<typeof createOtlpHttpExportDelegate>[0];

export interface CollectorOptions {
  url: string;
  headers: Readonly<Record<string, string>>;
  /** Timeout of one request, including the retries of the request. */
  timeoutMs: number;
  compression: 'gzip' | 'none';
  tls: { ca?: Buffer | undefined; cert?: Buffer | undefined; key?: Buffer | undefined };
}

/** A serializer of requests that are already encoded, so that the memory of queued spans can be counted exactly. */
const ENCODED = { ...ProtobufTraceSerializer, serializeRequest: (body: Uint8Array) => body };
const UNCOUNTED = { name: 'span', countItems: () => 0 } as const;

export class Collector {
  readonly #exporter: ReturnType<typeof createOtlpHttpExportDelegate<Uint8Array, unknown>>;
  readonly #closed = Promise.withResolvers<string>();

  constructor({ url, headers, timeoutMs, compression, tls }: CollectorOptions) {
    const options: HttpOptions = {
      ...{ url, userAgent: 'waypost', concurrencyLimit: 2, timeoutMillis: timeoutMs },
      headers: async () => ({ 'Content-Type': 'application/x-protobuf', ...headers }),
      compression: compression as HttpOptions['compression'],
      agentFactory: httpAgentFactoryFromOptions({ keepAlive: true, ...tls }),
    };
    this.#exporter = createOtlpHttpExportDelegate(options, ENCODED, 'otlp_http_span_exporter', UNCOUNTED, undefined);
  }

  /**
   * Resolves to the reason of a failure, or to undefined. Never rejects. Must not be called while an earlier call is
   * pending.
   */
  send(body: Uint8Array): Promise<string | undefined> {
    const sent = new Promise<string | undefined>((resolve) => {
      this.#exporter.export(body, ({ code, error }) => resolve(code === 0 ? undefined : reasonOf(error)));
    });
    return Promise.race([sent, this.#closed.promise]);
  }

  /** Fails the request in progress at once. The exporter aborts the request later, by its own timeout. */
  close(): void {
    this.#closed.resolve('the collector did not respond before the shutdown');
  }
}

function reasonOf(error: (Error & { code?: number | string }) | undefined): string {
  const { code, message } = error ?? { message: 'unknown' };
  return typeof code === 'number' ? `the collector responded with ${code}` : (code ?? message);
}
