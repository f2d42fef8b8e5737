/** The columns of messages and of their contents, and the index of each in a row. */
import { indexesOf, namesOf, type RowOf, type ValuesOf } from '../table.ts';

const MESSAGE = [
  ['key', 'number'],
  ['project_id', 'number'],
  ['origin', 'text'],
  ['due_at_ms', 'number'],
  ['bytes', 'number'],
  ['retried', 'number'],
  ['claimed_at_ms', 'number?'],
  ['claim_token', 'number?'],
  ['worker', 'text?'],
  ['wait_state', 'number'],
  ['queue_id', 'number?'],
  ['queue_position', 'number?'],
  ['queue_permit', 'number?'],
  ['flow_key', 'text?'],
  ['run_key', 'number?'],
  ['journal_position', 'number?'],
] as const;

/** The body comes last, so that reading the columns before it never walks its overflow pages. */
const CONTENT = [
  ['key', 'number'],
  ['project_id', 'number'],
  ['id', 'text'],
  ['url', 'text'],
  ['origin', 'text'],
  ['path', 'text'],
  ['method', 'text'],
  ['header', 'text?'],
  ['created_at_ms', 'number'],
  ['not_before_ms', 'number'],
  ['caller_ip', 'text?'],
  ['topic_name', 'text?'],
  ['queue_name', 'text?'],
  ['schedule_id', 'text?'],
  ['flow_control_key', 'text?'],
  ['labels', 'text?'],
  ['replay_of', 'number?'],
  ['settings', 'text'],
  ['body', 'bytes?'],
] as const;

export const MESSAGE_COLUMNS = namesOf(MESSAGE);
export const CONTENT_COLUMNS = namesOf(CONTENT);

/**
 * Rows are arrays, because they are cloned from one thread to another. As objects with the column names, a thousand rows
 * cost 1.6 to 1.9 times the CPU (Node 24, `structuredClone` and `postMessage` alike). The types know the value at each
 * index, so names cost nothing: `row[MESSAGE_AT.project_id]` is a number.
 */
export type NewMessageRow = ValuesOf<typeof MESSAGE>;
export type NewContentRow = ValuesOf<typeof CONTENT>;

/** Rows that were read, by column name. In a new message, the last two columns are null. */
export type MessageRow = RowOf<typeof MESSAGE> & { cancel_requested_at_ms: number | null; parkings: number | null };
export type WholeContentRow = RowOf<typeof CONTENT>;

/** The index of each column in a row. */
export const MESSAGE_AT = indexesOf(MESSAGE);
export const CONTENT_AT = indexesOf(CONTENT);
