/** The content of a message, read from the message itself, from the DLQ or from the log. Pure. */
import type { RequestSpec } from '../../api/as-code.ts';
import type { ResponseOf } from '../../api/client.ts';
import { isHidden } from '../../api/hidden.ts';
import type { Entry } from './timeline-items.ts';

export type Content = Omit<ResponseOf<'getMessage'>, 'body' | 'bodyBase64' | 'notBefore' | 'createdAt'> & {
  body: { text: string } | { base64: string } | undefined;
  createdAt?: number;
  notBefore?: number;
};

export function contentOf({ body, bodyBase64, ...rest }: ResponseOf<'getMessage'>): Content {
  const shown = body !== undefined ? { text: body } : bodyBase64 !== undefined ? { base64: bodyBase64 } : undefined;
  return { ...rest, body: shown };
}

export function contentOfEntry({ body, callbackHeaders, failureCallbackHeaders, ...rest }: Entry): Content {
  return {
    ...rest,
    ...(callbackHeaders && { callbackHeader: callbackHeaders }),
    ...(failureCallbackHeaders && { failureCallbackHeader: failureCallbackHeaders }),
    body: body === undefined ? undefined : textOrBytes(body),
  };
}

/** The log stores every body as base64. */
export function textOrBytes(base64: string): { text: string } | { base64: string } {
  try {
    const characters = atob(base64);
    const bytes = new Uint8Array(characters.length);
    for (let at = 0; at < bytes.length; at += 1) bytes[at] = characters.charCodeAt(at);
    return { text: new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes) };
  } catch {
    return { base64 };
  }
}

/** Whether a value of the message is hidden, so that the console cannot send the message again. */
export function isRedacted({ header = {}, body, url, callback, failureCallback }: Content): boolean {
  const text = body !== undefined && 'text' in body ? body.text : undefined;
  const values = [...Object.values(header).flat(), text, url, callback, failureCallback];
  return values.some((value) => value !== undefined && isHidden(value));
}

export function requestOf(content: Content): RequestSpec {
  const { url, queueName, method, header = {}, body, maxRetries, retryDelayExpression, timeout } = content;
  const { callback, failureCallback, labels, flowControlKey, parallelism, rate, period } = content;
  return {
    destination: url,
    queueName,
    method,
    headers: Object.entries(header).map(([name, values]) => [name, values.join(', ')]),
    body,
    retries: maxRetries,
    retryDelay: retryDelayExpression,
    timeoutS: timeout === undefined ? undefined : Math.ceil(timeout / 1_000),
    callback,
    failureCallback,
    labels,
    flowControl: flowControlKey === undefined ? undefined : { key: flowControlKey, parallelism, rate, periodS: period },
  };
}
