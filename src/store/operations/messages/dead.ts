/** Lists, retries and deletes the messages in the DLQ (contract M 17). */
import type { DeadFilter } from '../../../engine/lists/filters.ts';
import type { PageRequest } from '../../../engine/lists/page.ts';
import type { Saved } from '../../../engine/messages/accepted.ts';
import type { InProject, InProjectAt, NewMessage, ProjectId } from '../../../engine/model.ts';
import type { DeadMessage } from '../../../engine/stores.ts';
import { dlqIdOf } from '../../../protocol/cursor.ts';
import type { Queries, Transaction } from '../../driver.ts';
import { addCondition, contentConditions } from '../lists/filter.ts';
import {
  contentsOf,
  cutByBytes,
  DEAD_SIZES,
  inOrderOf,
  messageOf,
  type PageRows,
  type Position,
  positionsOfDlqIds,
} from '../lists/page.ts';
import { encodeList, type ListArgs, type MessageRefs } from '../lists/read-page.ts';
import { DEAD, pageOfFew, pageOfWindow } from '../lists/windows.ts';
import type { WriteContext } from '../logs/log-writer.ts';
import { longRead, pagedRead, read, write } from '../operation.ts';
import { dropUnreferencedContents } from '../retention.ts';
import { insertMessages } from './accept.ts';
import {
  type ContentRow,
  type DeadLetterRow,
  decodeDeadLetter,
  decodeMessage,
  encodeNewMessage,
  type StoredNewMessage,
  weightOf,
} from './rows.ts';

type ListDeadArgs = ListArgs<DeadFilter>;

export interface DeadRow extends Position, DeadLetterRow {
  message_key: number;
}

export interface DeadRows extends PageRows<DeadRow> {
  contents: ContentRow[];
  bytes: number;
}

const DEAD_FIELDS =
  'd.failed_at_ms as "timeMs", d.key as n, d.key as message_key, d.failed_at_ms, d.retried, d.response_status, d.response_header, d.response_body';

async function windowOf(queries: Queries, args: ListDeadArgs): Promise<DeadRows> {
  const found = args.messages
    ? await positionsOfMessages(queries, args, args.messages)
    : await listPositions(queries, args);
  const page = await cutByBytes(queries, found, DEAD_SIZES, args.slice.bytesMax);
  return { ...page, ...(await deadAt(queries, { projectId: args.projectId, positions: page.rows })) };
}

export const listDead = pagedRead(windowOf, {
  encode: (given: InProject & { filter: DeadFilter; page: PageRequest }) => encodeList(given, (state: never) => state),
  decode: decodeDead,
});

/** The entries at `positions`, in the same order. Positions without an entry are skipped. */
async function deadAt(
  queries: Queries,
  { projectId, positions: wanted }: { projectId: ProjectId; positions: readonly Position[] },
): Promise<{ rows: DeadRow[]; contents: ContentRow[] }> {
  const found = await queries.query<DeadRow>(
    `select ${DEAD_FIELDS} from dead d where d.key in (??) and d.project_id = ? and d.run_key is null`,
    [wanted.map(({ n }) => n), projectId],
  );
  const rows = inOrderOf(wanted, found);
  return { rows, contents: await contentsOf(queries, rows) };
}

function decodeDead({ rows, contents }: Pick<DeadRows, 'rows' | 'contents'>): DeadMessage[] {
  const messageByKey = new Map(contents.map((content) => [content.key, decodeMessage(content)]));
  return rows.map((row) => ({
    dlqId: dlqIdOf(row.timeMs, row.n),
    message: messageOf(messageByKey, row.n),
    deadLetter: decodeDeadLetter(row),
  }));
}

export const findDead = longRead(
  (queries: Queries, { projectId, dlqId }: InProject & { dlqId: string }) =>
    deadAt(queries, { projectId, positions: positionsOfDlqIds([dlqId]) }),
  (found) => decodeDead(found)[0],
);

/** The entries with these `dlqIds`, in the same order. Ids without an entry are skipped. */
export const findDeadMany = longRead(
  (queries: Queries, { projectId, dlqIds }: InProject & { dlqIds: readonly string[] }) =>
    deadAt(queries, { projectId, positions: positionsOfDlqIds(dlqIds) }),
  decodeDead,
);

/** The number of `dlqIds` that have an entry. Does not read the contents of the entries. */
export const countDead = read(
  async (queries: Queries, { projectId, dlqIds }: InProject & { dlqIds: readonly string[] }): Promise<number> =>
    (await existingKeys(queries, projectId, dlqIds)).length,
);

type DeadPosition = Position & { message_key: number };

function listPositions(
  queries: Queries,
  { projectId, filter: { responseStatus, ...attributes }, slice }: ListDeadArgs,
): Promise<PageRows<DeadPosition>> {
  const filter = contentConditions(attributes);
  const joins = filter.texts.length > 0 ? 'lookup contents c on (c.key = w.key)' : '';
  if (responseStatus) addCondition(filter, 'w.response_status in (??)', responseStatus);
  const passesMost = filter.texts.length === 0;
  // Entries of runs have their own list.
  addCondition(filter, 'w.run_key is null');
  return pageOfWindow(queries, projectId, slice, {
    list: DEAD,
    reads: ['response_status', 'run_key'],
    selects: ['w.key as message_key'],
    joins,
    filter,
    passesMost,
  });
}

function positionsOfMessages(
  queries: Queries,
  { projectId, filter: { responseStatus, ...attributes }, slice }: ListDeadArgs,
  { keys, ids }: MessageRefs,
): Promise<PageRows<DeadPosition>> {
  const filter = contentConditions(attributes);
  addCondition(filter, 'w.key in (??) and c.id in (??) and w.run_key is null', keys, ids);
  if (responseStatus) addCondition(filter, 'w.response_status in (??)', responseStatus);
  return pageOfFew(queries, projectId, slice, {
    list: DEAD,
    from: 'dead w lookup contents c on (c.key = w.key)',
    selects: ['w.key as message_key'],
    filter,
  });
}

/** Defines the command that deletes entries of messages, or of runs. The result is the number of deleted entries. */
export const defineDelete = (kind: 'messages' | 'runs') =>
  write(
    { weight: ({ dlqIds }) => ({ rows: dlqIds.length }) },
    async ({ tx }: WriteContext, { projectId, dlqIds }: InProject & { dlqIds: readonly string[] }): Promise<number> => {
      const keys = await existingKeys(tx, projectId, dlqIds, kind);
      await removeDead(tx, keys);
      return keys.length;
    },
  );

export const deleteDead = defineDelete('messages');

export interface RetryDeadArgs {
  projectId: ProjectId;
  retries: { dlqId: string; successor: StoredNewMessage }[];
  nowMs: number;
}

/**
 * Replaces DLQ entries with their successors, and returns the state of each successor. If an entry no longer exists,
 * nothing is done and the result is `missing`.
 */
export const retryDead = write(
  { weight: ({ retries }) => weightOf(retries.map(({ successor }) => successor)) },
  async (context: WriteContext, args: RetryDeadArgs): Promise<Saved[] | 'missing'> => {
    const dlqIds = args.retries.map(({ dlqId }) => dlqId);
    const keys = await existingKeys(context.tx, args.projectId, dlqIds);
    if (keys.length < args.retries.length) return 'missing';
    await removeDead(context.tx, keys);
    return insertMessages(
      context,
      args.retries.map(({ successor }) => successor),
      args.nowMs,
    );
  },
  ({ retries, ...args }: InProjectAt & { retries: { dlqId: string; successor: NewMessage }[] }) => ({
    ...args,
    retries: retries.map(({ dlqId, successor }) => ({ dlqId, successor: encodeNewMessage(successor) })),
  }),
);

/** The keys of the entries that exist, of messages or of runs. */
async function existingKeys(
  queries: Queries,
  projectId: ProjectId,
  dlqIds: readonly string[],
  kind: 'messages' | 'runs' = 'messages',
): Promise<number[]> {
  const wanted = positionsOfDlqIds(dlqIds);
  const rows = await queries.query<Position>(
    `select d.failed_at_ms as "timeMs", d.key as n from dead d
     where d.key in (??) and d.project_id = ? and d.run_key is ${kind === 'runs' ? 'not null' : 'null'} order by d.key`,
    [wanted.map(({ n }) => n), projectId],
  );
  return inOrderOf(wanted, rows).map(({ n }) => n);
}

export async function removeDead(tx: Transaction, keys: readonly number[]): Promise<void> {
  if (keys.length === 0) return;
  await tx.send('delete from dead where key in (??)', [keys]);
  await dropUnreferencedContents(tx, keys);
}
