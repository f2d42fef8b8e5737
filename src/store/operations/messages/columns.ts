/** Which columns does a message have, which does its content have, and at which index is each in a row? */

export const MESSAGE_COLUMNS = [
  'key',
  'project_id',
  'origin',
  'due_at_ms',
  'bytes',
  'retried',
  'claimed_at_ms',
  'claim_token',
  'worker',
  'line',
  'queue_id',
  'queue_position',
  'queue_slot',
  'flow_key',
  'run_key',
  'journal_position',
] as const;

/** The body comes last, so that reading the columns before it never walks its overflow pages. */
export const CONTENT_COLUMNS = [
  'key',
  'project_id',
  'id',
  'url',
  'origin',
  'path',
  'method',
  'header',
  'created_at_ms',
  'not_before_ms',
  'caller_ip',
  'topic_name',
  'queue_name',
  'schedule_id',
  'flow_control_key',
  'labels',
  'settings',
  'body',
] as const;

interface MessageValues {
  key: number;
  project_id: number;
  origin: string;
  due_at_ms: number;
  bytes: number;
  retried: number;
  claimed_at_ms: number | null;
  claim_token: number | null;
  worker: string | null;
  line: number;
  queue_id: number | null;
  queue_position: number | null;
  queue_slot: number | null;
  flow_key: string | null;
  run_key: number | null;
  journal_position: number | null;
}

interface ContentValues {
  key: number;
  project_id: number;
  id: string;
  url: string;
  origin: string;
  path: string;
  method: string;
  header: string | null;
  created_at_ms: number;
  not_before_ms: number;
  caller_ip: string | null;
  topic_name: string | null;
  queue_name: string | null;
  schedule_id: string | null;
  flow_control_key: string | null;
  labels: string | null;
  settings: string;
  body: Uint8Array | null;
}

/**
 * Rows are arrays, because they are cloned from one thread to another. As objects with these names, a thousand of them
 * cost 1.6 to 1.9 times the CPU (Node 24, `structuredClone` and `postMessage` alike). The types know the value at each
 * index, so names cost nothing: `row[MESSAGE_AT.project_id]` is a number.
 */
export type NewMessageRow = Row<typeof MESSAGE_COLUMNS, MessageValues>;
export type NewContentRow = Row<typeof CONTENT_COLUMNS, ContentValues>;

type Row<Columns extends readonly string[], Values> = {
  -readonly [Place in keyof Columns]: Values[Columns[Place] & keyof Values];
};

/** The place of each column in a row. */
export const MESSAGE_AT = placesOf(MESSAGE_COLUMNS);
export const CONTENT_AT = placesOf(CONTENT_COLUMNS);

type Places<Columns extends readonly string[]> = {
  [Place in Extract<keyof Columns, `${number}`> as Columns[Place] & string]: Place extends `${infer At extends number}`
    ? At
    : never;
};

function placesOf<const Columns extends readonly string[]>(columns: Columns): Places<Columns> {
  return Object.fromEntries(columns.map((column, index) => [column, index])) as Places<Columns>;
}
