/**
 * Writes a message as the request that sends the message: the headers of the API, a shell command, and code for the
 * official client. Pure.
 */

/** A request, with the values of the form in which the user describes the request. */
export interface RequestSpec {
  /** Default: a message, or a schedule if there is a cron expression. */
  kind?: 'trigger' | 'notify' | undefined;
  /** A URL, the name of a URL group, or the id of an event. */
  destination: string;
  queueName?: string | undefined;
  cron?: string | undefined;
  scheduleId?: string | undefined;
  delay?: string | undefined;
  deduplicationId?: string | undefined;
  method: string;
  /** Headers that the destination gets. */
  headers: readonly (readonly [name: string, value: string])[];
  /** Text, or bytes in base64. */
  body?: { text: string } | { base64: string } | undefined;
  retries?: number | undefined;
  retryDelay?: string | undefined;
  timeoutS?: number | undefined;
  callback?: string | undefined;
  failureCallback?: string | undefined;
  labels?: readonly string[] | undefined;
  flowControl?: FlowControl | undefined;
}

interface FlowControl {
  key: string;
  parallelism?: number | undefined;
  rate?: number | undefined;
  periodS?: number | undefined;
}

const DEFAULT_METHOD = 'POST';

/** The headers of the request to this server. */
export function headersOf(request: RequestSpec): Record<string, string> {
  const { method, headers, retries, retryDelay, timeoutS, callback, failureCallback, labels, flowControl } = request;
  const { cron, scheduleId, queueName, delay, deduplicationId } = request;
  const contentType = headers.find(([name]) => isContentType(name))?.[1];
  const forwarded = headers.filter(([name]) => !isContentType(name));
  return definedOnly({
    'Content-Type': contentType,
    'Upstash-Method': method === DEFAULT_METHOD ? undefined : method,
    'Upstash-Cron': cron,
    'Upstash-Schedule-Id': scheduleId,
    'Upstash-Queue-Name': cron === undefined ? undefined : queueName,
    'Upstash-Delay': delay,
    'Upstash-Deduplication-Id': deduplicationId,
    'Upstash-Retries': retries,
    'Upstash-Retry-Delay': retryDelay,
    'Upstash-Timeout': timeoutS === undefined ? undefined : `${timeoutS}s`,
    'Upstash-Callback': callback,
    'Upstash-Failure-Callback': failureCallback,
    'Upstash-Label': labels?.join(','),
    'Upstash-Flow-Control-Key': flowControl?.key,
    'Upstash-Flow-Control-Value': flowControl && flowControlValue(flowControl),
    ...Object.fromEntries(forwarded.map(([name, value]) => [`Upstash-Forward-${name}`, value])),
  });
}

/** The path below `/v2/`. */
export function pathOf({ kind, cron, queueName, destination }: RequestSpec): string {
  if (kind === 'notify') return `notify/${encodeURIComponent(destination)}`;
  if (kind === 'trigger') return `trigger/${destination}`;
  if (cron !== undefined) return `schedules/${destination}`;
  return queueName === undefined ? `publish/${destination}` : `enqueue/${encodeURIComponent(queueName)}/${destination}`;
}

/** A command for `sh`, `bash` and `zsh`. The command reads the token from `$QSTASH_TOKEN`. */
export function asCurl(request: RequestSpec, origin: string): string {
  const { body } = request;
  const headers = headersOf(request);
  // Without this option, curl declares every body to be a form.
  const untyped = body !== undefined && headers['Content-Type'] === undefined ? ["-H 'Content-Type:'"] : [];
  const parts = [
    `curl -X POST --globoff --path-as-is ${quoted(`${origin}/v2/${pathOf(request)}`)}`,
    '-H "Authorization: Bearer $QSTASH_TOKEN"',
    ...Object.entries(headers).map(([name, value]) => `-H ${quoted(value === '' ? `${name};` : `${name}: ${value}`)}`),
    ...untyped,
    ...(body === undefined ? [] : [isShellText(body) ? `--data-raw ${quoted(body.text)}` : '--data-binary @-']),
  ];
  const line = parts.join(' \\\n  ');
  return body === undefined || isShellText(body) ? line : `printf %s ${quoted(base64Of(body))} | base64 -d | ${line}`;
}

/** In single quotes a shell changes nothing, not even a line break; a single quote has to be escaped. */
export function quoted(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}

/** TypeScript with the official client. */
export function asClientCode(request: RequestSpec, origin: string): string {
  const { destination, queueName, method, headers, body, retries, retryDelay, timeoutS } = request;
  const { kind, cron, scheduleId, delay, deduplicationId, callback, failureCallback, labels, flowControl } = request;
  const isUrl = /^https?:\/\//i.test(destination);
  const options = {
    [destinationName(request, isUrl)]: destination,
    cron,
    scheduleId,
    queueName: cron === undefined ? undefined : queueName,
    delay,
    deduplicationId,
    method: method === DEFAULT_METHOD ? undefined : method,
    headers: headers.length === 0 ? undefined : Object.fromEntries(headers),
    retries,
    retryDelay,
    timeout: timeoutS,
    callback,
    failureCallback,
    label: labels?.length === 1 ? labels[0] : labels,
    flowControl: flowControl && {
      key: flowControl.key,
      parallelism: flowControl.parallelism,
      rate: flowControl.rate,
      period: flowControl.periodS,
    },
  };
  const lines = literal(options, '').split('\n');
  if (body) lines.splice(-1, 0, `  ${kind === 'notify' ? 'eventData' : 'body'}: ${bodyLiteral(body)},`);
  return [
    `import { Client } from "@upstash/${kind === undefined ? 'qstash' : 'workflow'}";`,
    '',
    `const client = new Client({ baseUrl: ${text(origin)}, token: process.env.QSTASH_TOKEN });`,
    '',
    `await client.${functionOf(request)}(${lines.join('\n')});`,
    '',
  ].join('\n');
}

function destinationName({ kind, cron }: RequestSpec, isUrl: boolean): string {
  if (kind === 'notify') return 'eventId';
  if (cron !== undefined) return 'destination';
  return isUrl || kind === 'trigger' ? 'url' : 'urlGroup';
}

function functionOf({ kind, cron, queueName }: RequestSpec): string {
  if (kind !== undefined) return kind;
  if (cron !== undefined) return 'schedules.create';
  return queueName === undefined ? 'publish' : `queue({ queueName: ${text(queueName)} }).enqueue`;
}

/** A JSON string is also a TypeScript string. */
function text(value: string): string {
  return JSON.stringify(value);
}

function literal(value: unknown, indent: string): string {
  if (value === null || typeof value !== 'object' || Array.isArray(value)) return JSON.stringify(value);
  const members = Object.entries(value).filter(([, member]) => member !== undefined);
  const deeper = `${indent}  `;
  const lines = members.map(([name, member]) => `${deeper}${nameOf(name)}: ${literal(member, deeper)},`);
  return ['{', ...lines, `${indent}}`].join('\n');
}

function nameOf(name: string): string {
  return /^[a-z_$][\w$]*$/i.test(name) ? name : text(name);
}

function bodyLiteral(body: { text: string } | { base64: string }): string {
  return 'text' in body ? text(body.text) : `Buffer.from(${text(body.base64)}, "base64")`;
}

/** Shells limit the length of an argument. */
const ARGUMENT_LENGTH_MAX = 100_000;
/** Every JavaScript engine accepts this number of arguments. */
const CHUNK_BYTES = 8_192;

/** Control characters except tabs and line breaks: a terminal would execute them on paste. */
const CONTROL_CHARACTERS = /[^\P{Cc}\t\n]/u;

function isShellText(body: { text: string } | { base64: string }): body is { text: string } {
  return 'text' in body && !CONTROL_CHARACTERS.test(body.text) && body.text.length <= ARGUMENT_LENGTH_MAX;
}

function base64Of(body: { text: string } | { base64: string }): string {
  if ('base64' in body) return body.base64;
  const bytes = new TextEncoder().encode(body.text);
  let characters = '';
  for (let at = 0; at < bytes.length; at += CHUNK_BYTES) {
    characters += String.fromCharCode(...bytes.subarray(at, at + CHUNK_BYTES));
  }
  return btoa(characters);
}

function flowControlValue({ parallelism, rate, periodS }: FlowControl): string {
  const values = definedOnly({ parallelism, rate, period: periodS });
  return Object.entries(values)
    .map(([name, value]) => `${name}=${value}`)
    .join(',');
}

function isContentType(name: string): boolean {
  return name.toLowerCase() === 'content-type';
}

function definedOnly(values: Record<string, string | number | undefined>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(values).flatMap(([name, value]) => (value === undefined ? [] : [[name, String(value)]])),
  );
}
