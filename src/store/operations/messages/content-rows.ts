/**
 * Encodes and decodes the immutable part of a message: its content, header maps, bytes and settings. All rows of
 * messages and runs are made with these functions.
 */
import type { Message } from '../../../engine/model.ts';
import { keyOfMessageId } from '../../../protocol/ids.ts';
import type {
  CallbackSettings,
  HeaderMap,
  MessageSettings,
  ResultMessage,
} from '../../../protocol/options/settings.ts';
import type { NewContentRow } from './columns.ts';

export function encodeContent(message: Message): NewContentRow {
  const { settings } = message;
  return [
    message.key,
    message.projectId,
    message.id,
    message.url,
    message.origin,
    pathOf(message.url),
    message.method,
    encodeHeader(message.header),
    message.createdAtMs,
    message.notBeforeMs,
    message.callerIp ?? null,
    settings.topicName ?? null,
    settings.queueName ?? null,
    settings.scheduleId ?? null,
    settings.flowControl?.key ?? null,
    settings.labels?.length ? `,${settings.labels.join(',')},` : null,
    settings.replayOf === undefined ? null : (keyOfMessageId(settings.replayOf) ?? null),
    JSON.stringify(settings),
    encodeBytes(message.body),
  ];
}

/** The path of a URL as it is written, for the `path` filter. */
function pathOf(url: string): string {
  const authority = url.indexOf('//') + 2;
  const end = url.slice(authority).search(/[?#]/);
  const withoutQuery = end === -1 ? url : url.slice(0, authority + end);
  const start = withoutQuery.indexOf('/', authority);
  return start === -1 ? '/' : withoutQuery.slice(start);
}

export function encodeHeader(header: HeaderMap): string | null {
  for (const _name in header) return JSON.stringify(header);
  return null;
}

/** Copies a view of a larger buffer: passing the view to another thread would copy the whole buffer. */
export function encodeBytes(bytes: Uint8Array): Uint8Array | null {
  if (bytes.byteLength === 0) return null;
  return bytes.byteLength === bytes.buffer.byteLength ? bytes : new Uint8Array(bytes);
}

/** A header map has no prototype (settings.ts), but JSON and copies from another thread have one. */
export function decodeHeader(text: string | null): HeaderMap {
  return text === null ? withoutPrototype({}) : withoutPrototype(JSON.parse(text) as HeaderMap);
}

export function withoutPrototype(header: HeaderMap): HeaderMap {
  return Object.assign(Object.create(null) as HeaderMap, header);
}

export function decodeSettings(text: string): MessageSettings {
  const settings = JSON.parse(text) as MessageSettings;
  restoreCallbackHeaders(settings);
  const { wait, invoke } = settings;
  if (wait) {
    wait.headers = withoutPrototype(wait.headers);
    wait.timeoutHeaders = withoutPrototype(wait.timeoutHeaders);
    restoreResultHeaders(wait.notified);
    restoreResultHeaders(wait.timedOut);
  }
  if (invoke) restoreResultHeaders(invoke.result);
  return settings;
}

function restoreResultHeaders(result: ResultMessage): void {
  result.header = withoutPrototype(result.header);
  restoreCallbackHeaders(result.settings);
}

export function restoreCallback(callback: CallbackSettings): void {
  callback.header = withoutPrototype(callback.header);
  restoreCallbackHeaders(callback);
}

function restoreCallbackHeaders(settings: Pick<CallbackSettings, 'callback' | 'failureCallback'>): void {
  for (const callback of [settings.callback, settings.failureCallback]) {
    if (callback) restoreCallback(callback);
  }
}
