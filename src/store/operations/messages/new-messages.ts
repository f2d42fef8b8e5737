/** What do new messages weigh, and whose shared state do they touch? */
import type { ProjectId } from '../../../engine/model.ts';
import type { StoreLimits } from '../../../engine/stores.ts';
import { MESSAGE_AT } from './columns.ts';
import type { StoredNewMessage } from './rows.ts';

export function weightOf(messages: readonly { content: readonly unknown[] }[]): { rows: number; bytes: number } {
  return { rows: messages.length, bytes: messages.reduce((sum, { content }) => sum + bytesOf(content.at(-1)), 0) };
}

/** The size of `value` if it is a body, otherwise 0. */
export function bytesOf(value: unknown): number {
  return value instanceof Uint8Array ? value.byteLength : 0;
}

/** Projects whose lanes, runs, deduplication ids or budgets `messages` have part in. */
export function projectsSharedBy(messages: readonly StoredNewMessage[], limits: StoreLimits): ProjectId[] {
  const isLimited = limits.parallelismMax > 0 || limits.messagesPerDayMax > 0;
  return messages.filter((message) => isLimited || sharesSomething(message)).map(projectOf);
}

function sharesSomething({ deduplication, queueName, flow, message }: StoredNewMessage): boolean {
  if (deduplication !== undefined || queueName !== undefined || flow !== undefined) return true;
  // What begins a run, or has an entry in its journal, is a message of it.
  return message[MESSAGE_AT.run_key] !== null;
}

export function projectOf({ message }: Pick<StoredNewMessage, 'message'>): ProjectId {
  return message[MESSAGE_AT.project_id];
}
