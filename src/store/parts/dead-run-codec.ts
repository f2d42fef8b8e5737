/** How do runs in the DLQ, and those that are retried from it, pass to the database's thread and back? */
import type { Message } from '../../engine/model.ts';
import type {
  DeadRun,
  FailureCallback,
  OutlinedEntry,
  RetriedEntry,
  RunRetry,
} from '../../engine/runs/dead-run-store.ts';
import { dlqIdOf } from '../../protocol/cursor.ts';
import { decodeDeadLetter, decodeDetail, decodeMessage, encodeNewMessage } from '../operations/messages/rows.ts';
import type { DeadRunRow, DeadRunRows, OutlineRow } from '../operations/runs/dead-runs.ts';
import type { RetryRunArgs, StoredRetriedEntry } from '../operations/runs/retry.ts';
import {
  decodeConfig,
  encodeEntry,
  encodeRecord,
  encodeRun,
  entryKindOf,
  failureStateOf,
} from '../operations/runs/run-rows.ts';

export function decodeDeadRuns({ rows, contents, answers }: DeadRunRows): DeadRun[] {
  const messages = new Map(contents.map((content) => [content.key, decodeMessage(content)]));
  const answerByKey = new Map(answers.map((row) => [row.message_key, decodeDetail(row).response]));
  return rows.map((row) => {
    const message = messages.get(row.n);
    if (!message) throw new Error(`message ${row.n} has no content`);
    const told = failureCallbackOf(row, answerByKey);
    return decodeDeadRun(row, message, told);
  });
}

function decodeDeadRun(row: DeadRunRow, message: Message, failureCallback: FailureCallback | undefined): DeadRun {
  const dead: DeadRun = {
    dlqId: dlqIdOf(row.timeMs, row.n),
    run: {
      key: row.run_key,
      projectId: row.run_project_id,
      id: row.run_id,
      url: row.run_url,
      createdAtMs: row.run_created_at_ms,
      config: decodeConfig(row.run_config),
    },
    message,
    deadLetter: decodeDeadLetter(row),
    payload: row.payload ?? new Uint8Array(0),
  };
  if (failureCallback) dead.failureCallback = failureCallback;
  return dead;
}

function failureCallbackOf(
  { failure_key: key, failure_state: state }: DeadRunRow,
  answerByKey: ReadonlyMap<number, FailureCallback['answer']>,
): FailureCallback | undefined {
  if (key === null || state === null) return undefined;
  const answer = answerByKey.get(key);
  return { state: failureStateOf(state), ...(answer && { answer }) };
}

export function decodeOutline(row: OutlineRow): OutlinedEntry {
  const { position, kind, key, entryKey, body_bytes: bytes } = row;
  return { position, kind: entryKindOf(kind), key, entryKey, bodyBytes: bytes ?? 0 };
}

export function encodeRunRetry({
  dlqId: _,
  run,
  journal,
  children,
  ...rest
}: RunRetry): Omit<RetryRunArgs, 'place' | 'nowMs'> {
  return {
    ...rest,
    run: encodeRun(run),
    journal: journal.map(encodeRetriedEntry),
    children: children.map(encodeNewMessage),
  };
}

function encodeRetriedEntry(entry: RetriedEntry): StoredRetriedEntry {
  switch (entry.kind) {
    case 'shared':
      return { kind: 'shared', key: entry.key, entry: encodeEntry(entry.entry) };
    case 'message':
      return { kind: 'message', message: encodeNewMessage(entry.message) };
    case 'record':
      return { ...entry, record: encodeRecord(entry.record) };
  }
}
