/** Encodes the body of a callback (contract M 9.3). */
import { Buffer } from 'node:buffer';
import { base64BytesOf } from './bodies.ts';
import { isHeaderValue, newHeaderMap } from './headers.ts';
import type { HeaderMap, HttpMethod } from './options/settings.ts';
import { maskPassword } from './urls/masked-url.ts';
import { decodeWireText } from './urls/request-target.ts';

/** One attempt and its message. The member names are the JSON names; times are Unix milliseconds. */
export interface CallbackReport {
  /** 0 if there was no response; then `header` is empty, and `body` contains the reason. */
  status: number;
  header: HeaderMap;
  body: Uint8Array;
  /** Retries made before this attempt. */
  retried: number;
  maxRetries: number;
  /** In a failure callback: the DLQ id of the source message. */
  dlqId?: string | undefined;
  sourceMessageId: string;
  topicName?: string | undefined;
  endpointName?: string | undefined;
  url: string;
  method: HttpMethod;
  sourceHeader: HeaderMap;
  sourceBody: Uint8Array;
  notBefore: number;
  createdAt: number;
  scheduleId?: string | undefined;
  callerIP?: string | undefined;
  /** Set if the callback reports the failure of a run (contract W 13.2). */
  workflowRunId?: string | undefined;
  workflowCreatedAt?: number | undefined;
}

/**
 * The report as JSON, assembled as bytes, since the two bodies can exceed the maximum length of a string. Header values
 * are decoded to text. With `forWorkflow`, a value whose text HTTP does not allow is not decoded, since libraries create
 * `Headers` from the values.
 */
export function encodeCallbackPayload(
  { body, sourceBody, url, header, sourceHeader, ...others }: CallbackReport,
  { forWorkflow = false } = {},
): Uint8Array {
  const textOf = (value: string): string => {
    const text = decodeWireText(value);
    return forWorkflow && !isHeaderValue(text) ? value : text;
  };
  const rest = {
    url: maskPassword(url),
    ...others,
    header: mapped(header, textOf),
    sourceHeader: mapped(sourceHeader, textOf),
  };
  return Buffer.concat([
    Buffer.from('{"body":"'),
    base64BytesOf(body),
    Buffer.from('","sourceBody":"'),
    base64BytesOf(sourceBody),
    Buffer.from(`",${JSON.stringify(rest).slice(1)}`),
  ]);
}

function mapped(map: HeaderMap, textOf: (value: string) => string): HeaderMap {
  const texts = newHeaderMap();
  for (const [name, values] of Object.entries(map)) texts[name] = values.map(textOf);
  return texts;
}
