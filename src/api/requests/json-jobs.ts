/** The messages between a worker's thread and the thread that parses its large JSON. */
import { ApiError, type ErrorCode } from '../../protocol/errors.ts';
import type { ItemLimits, RequestItem } from './request-items.ts';

export type JsonJob =
  | { kind: 'items'; bytes: Uint8Array; limits: ItemLimits }
  | { kind: 'checkpoint'; bytes: Uint8Array; othersMax: number }
  | { kind: 'value'; bytes: Uint8Array; valuesMax: number };

/** `continue` requests the next slice of the items. */
export type JsonRequest = JsonJob | { kind: 'continue' };

export type JsonReply =
  | { kind: 'items'; items: RequestItem[]; isLast: boolean }
  | { kind: 'value'; value: unknown }
  | { kind: 'refused'; code: ErrorCode; message: string; isAnySentByRun: boolean }
  /** A defect of our code. */
  | { kind: 'failed'; reason: string };

export function errorReply(error: unknown, isAnySentByRun: boolean): JsonReply {
  if (error instanceof ApiError) return { kind: 'refused', code: error.code, message: error.message, isAnySentByRun };
  return { kind: 'failed', reason: error instanceof Error ? (error.stack ?? error.message) : String(error) };
}
