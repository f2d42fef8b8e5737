/** Reads OpenTelemetry's variables: the collector's options and the resource. Variables for traces take precedence. */
import { readFileSync } from 'node:fs';
import type { CollectorOptions } from './collector.ts';
import type { Attributes } from './spans.ts';

type Environment = Readonly<Record<string, string | undefined>>;

const TIMEOUT_MS_DEFAULT = 10_000;

/** Throws an error that names the invalid variable. `endpoint` is without `/v1/traces`. */
export function readCollectorOptions(endpoint: string, environment: Environment): CollectorOptions {
  const find = (name: string): [variable: string, value: string] | undefined => {
    for (const variable of [`OTEL_EXPORTER_OTLP_TRACES_${name}`, `OTEL_EXPORTER_OTLP_${name}`]) {
      const value = environment[variable]?.trim();
      if (value) return [variable, value];
    }
    return undefined;
  };
  const readPem = (name: string): Buffer | undefined => {
    const [variable, path] = find(name) ?? [];
    if (variable === undefined || path === undefined) return undefined;
    try {
      return readFileSync(path);
    } catch (error) {
      throw new Error(`${variable}: ${(error as Error).message}`, { cause: error });
    }
  };
  const [timeoutVariable, timeout = String(TIMEOUT_MS_DEFAULT)] = find('TIMEOUT') ?? [];
  if (!/^[1-9]\d{0,8}$/.test(timeout)) throw new Error(`${timeoutVariable} must be milliseconds, such as 10000`);
  const [compressionVariable, compression = 'none'] = find('COMPRESSION') ?? [];
  if (compression !== 'gzip' && compression !== 'none') throw new Error(`${compressionVariable} must be gzip or none`);
  const [headersVariable, headers = ''] = find('HEADERS') ?? [];
  return {
    url: `${endpoint.replace(/\/+$/, '')}/v1/traces`,
    headers: pairsOf(headers, headersVariable),
    timeoutMs: Number(timeout),
    compression,
    tls: { ca: readPem('CERTIFICATE'), cert: readPem('CLIENT_CERTIFICATE'), key: readPem('CLIENT_KEY') },
  };
}

/** The resource of all spans: the service, and the worker as its instance. */
export function readResource(
  { instance, version }: { instance: string; version: string },
  environment: Environment,
): Attributes {
  const variable = 'OTEL_RESOURCE_ATTRIBUTES';
  const name = environment['OTEL_SERVICE_NAME']?.trim();
  return {
    ...{ 'service.name': 'waypost', 'service.version': version, 'service.instance.id': instance },
    ...pairsOf(environment[variable] ?? '', variable),
    ...(name && { 'service.name': name }),
  };
}

/** Parses OpenTelemetry's format `key=value,key=value`, with percent-encoded values. */
function pairsOf(text: string, variable = ''): Record<string, string> {
  const pairs = text.split(',').filter((pair) => pair.trim() !== '');
  return Object.fromEntries(
    pairs.map((pair) => {
      const [, key = '', value = ''] = /^\s*([^=\s]+)\s*=(.*)$/s.exec(pair) ?? [];
      if (key === '') throw new Error(`${variable} must be pairs such as key=value,key=value`);
      return [key, decoded(value.trim(), variable)];
    }),
  );
}

function decoded(value: string, variable: string): string {
  try {
    return decodeURIComponent(value);
  } catch {
    throw new Error(`${variable}: a percent sign must be written as %25`);
  }
}
