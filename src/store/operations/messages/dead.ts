/** What lies in the DLQ, and how does it leave (contract M 17)? */
import type { AttributeFilter, DeadFilter } from '../../../engine/filters.ts';
import type { Saved } from '../../../engine/messages/accepted.ts';
import type { InProject, InProjectAt, MessageId, MessageKey, NewMessage, ProjectId } from '../../../engine/model.ts';
import type { PageRequest } from '../../../engine/page.ts';
import type { DeadMessage } from '../../../engine/stores.ts';
import { dlqIdOf } from '../../../protocol/cursor.ts';
import type { Queries, SqlParam, Transaction } from '../../driver.ts';
import { also, contentConditions } from '../filter.ts';
import type { WriteContext } from '../logs/log-writer.ts';
import { longRead, pagedRead, read, write } from '../operation.ts';
import {
  contentsOf,
  cutByBytes,
  cutPage,
  DEAD_SIZES,
  messageOf,
  type PageRows,
  type Position,
  placesOf,
  type Slice,
  sliceSql,
} from '../page.ts';
import { messagesNamed } from '../read-page.ts';
import { dropUnreferencedContents } from '../retention.ts';
import { DEAD, pageOfWindow } from '../windows.ts';
import { insertMessages } from './accept.ts';
import { weightOf } from './new-messages.ts';
import {
  type ContentRow,
  type DeadLetterRow,
  decodeDeadLetter,
  decodeMessage,
  encodeNewMessage,
  type StoredNewMessage,
} from './rows.ts';

export interface ListDeadArgs {
  projectId: ProjectId;
  filter: AttributeFilter;
  /** Both or none. */
  messages?: { keys: MessageKey[]; ids: MessageId[] };
  responseStatus?: number[];
  slice: Slice;
}

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
  const found = args.messages ? await placesOfMessages(queries, args, args.messages) : await places(queries, args);
  const page = await cutByBytes(queries, found, DEAD_SIZES, args.slice.bytesMax);
  return { ...page, ...(await deadAt(queries, { projectId: args.projectId, places: page.rows })) };
}

export const listDead = pagedRead(windowOf, {
  encode: ({
    projectId,
    filter: { messageId, responseStatus, ...filter },
  }: InProject & { filter: DeadFilter; page: PageRequest }) => ({
    ...{ projectId, filter },
    ...(messageId && { messages: messagesNamed(messageId) }),
    ...(responseStatus && { responseStatus }),
  }),
  decode: decodeDead,
});

/** The entries at `places` that exist, in the order of `places`. */
async function deadAt(
  queries: Queries,
  { projectId, places: wanted }: { projectId: ProjectId; places: readonly Position[] },
): Promise<{ rows: DeadRow[]; contents: ContentRow[] }> {
  const found = await queries.query<DeadRow>(
    `select ${DEAD_FIELDS} from dead d where d.key in (??) and d.project_id = ? and d.run_key is null`,
    [wanted.map(({ n }) => n), projectId],
  );
  const byKey = new Map(found.map((row) => [row.n, row]));
  const rows = wanted.flatMap((place) => {
    const row = byKey.get(place.n);
    return row && row.timeMs === place.timeMs ? [row] : [];
  });
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
    deadAt(queries, { projectId, places: placesOf([dlqId]) }),
  (found) => decodeDead(found)[0],
);

/** Those that exist, in the order of `dlqIds`. */
export const findDeadMany = longRead(
  (queries: Queries, { projectId, dlqIds }: InProject & { dlqIds: readonly string[] }) =>
    deadAt(queries, { projectId, places: placesOf(dlqIds) }),
  decodeDead,
);

/** How many of them exist. Does not read their contents. */
export const countDead = read(
  async (queries: Queries, { projectId, dlqIds }: InProject & { dlqIds: readonly string[] }): Promise<number> => {
    const wanted = placesOf(dlqIds);
    const found = await queries.query<Position>(
      'select d.failed_at_ms as "timeMs", d.key as n from dead d where d.key in (??) and d.project_id = ? and d.run_key is null',
      [wanted.map(({ n }) => n), projectId],
    );
    const timeByKey = new Map(found.map(({ n, timeMs }) => [n, timeMs]));
    return wanted.filter(({ n, timeMs }) => timeByKey.get(n) === timeMs).length;
  },
);

type Place = Position & { message_key: number };

function places(
  queries: Queries,
  { projectId, filter: attributes, responseStatus, slice }: ListDeadArgs,
): Promise<PageRows<Place>> {
  const filter = contentConditions(attributes);
  const joins = filter.texts.length > 0 ? 'lookup contents c on (c.key = w.key)' : '';
  if (responseStatus) also(filter, 'w.response_status in (??)', responseStatus);
  const passesMost = filter.texts.length === 0;
  // Those of runs are listed apart.
  also(filter, 'w.run_key is null');
  return pageOfWindow(queries, projectId, slice, {
    list: DEAD,
    reads: ['response_status', 'run_key'],
    selects: ['w.key as message_key'],
    joins,
    filter,
    passesMost,
  });
}

async function placesOfMessages(
  queries: Queries,
  args: ListDeadArgs,
  { keys, ids }: { keys: MessageKey[]; ids: MessageId[] },
): Promise<PageRows<Place>> {
  const { slice } = args;
  const range = sliceSql(slice, 'd.failed_at_ms', 'd.key');
  const content = contentConditions(args.filter);
  const conditions = [...range.texts, ...content.texts];
  const params: SqlParam[] = [...range.params, ...content.params];
  if (args.responseStatus) {
    conditions.push('d.response_status in (??)');
    params.push(args.responseStatus);
  }
  const rows = await queries.query<Place>(
    // The plus keeps the planner from walking the project's whole list in order instead.
    `select d.failed_at_ms as "timeMs", d.key as n, d.key as message_key
     from dead d lookup contents c on (c.key = d.key)
     where d.key in (??) and c.id in (??) and +d.project_id = ? and d.run_key is null
     ${conditions.map((condition) => `and ${condition}`).join(' ')}
     order by d.failed_at_ms ${range.direction}, d.key ${range.direction} limit ?`,
    [keys, ids, args.projectId, ...params, slice.count + 1],
  );
  return cutPage(rows, slice.count, undefined);
}

/** Returns how many existed. */
export const deleteDead = write(
  { weight: ({ dlqIds }) => ({ rows: dlqIds.length }) },
  async ({ tx }: WriteContext, { projectId, dlqIds }: InProject & { dlqIds: readonly string[] }): Promise<number> => {
    const keys = await existing(tx, projectId, placesOf(dlqIds));
    await removeDead(tx, keys);
    return keys.length;
  },
);

export interface RetryDeadArgs {
  projectId: ProjectId;
  retries: { dlqId: string; successor: StoredNewMessage }[];
  nowMs: number;
}

/** Removes the entries and saves their successors; answers where those stand. `missing`: an entry is gone, and nothing was done. */
export const retryDead = write(
  { weight: ({ retries }) => weightOf(retries.map(({ successor }) => successor)) },
  async (context: WriteContext, args: RetryDeadArgs): Promise<Saved[] | 'missing'> => {
    const keys = await existing(context.tx, args.projectId, placesOf(args.retries.map(({ dlqId }) => dlqId)));
    if (keys.length < args.retries.length) return 'missing';
    await removeDead(context.tx, keys);
    return insertMessages(
      context,
      args.retries.map(({ successor }) => successor),
      args.nowMs,
    );
  },
  ([{ retries, ...args }]: [InProjectAt & { retries: { dlqId: string; successor: NewMessage }[] }]) => ({
    ...args,
    retries: retries.map(({ dlqId, successor }) => ({ dlqId, successor: encodeNewMessage(successor) })),
  }),
);

async function existing(tx: Transaction, projectId: ProjectId, wanted: readonly Position[]): Promise<number[]> {
  const rows = await tx.query<{ key: number; failed_at_ms: number }>(
    'select key, failed_at_ms from dead where key in (??) and project_id = ? and run_key is null order by key',
    [wanted.map(({ n }) => n), projectId],
  );
  const timeByKey = new Map(wanted.map(({ n, timeMs }) => [n, timeMs]));
  return rows.filter((row) => timeByKey.get(row.key) === row.failed_at_ms).map((row) => row.key);
}

export async function removeDead(tx: Transaction, keys: readonly number[]): Promise<void> {
  if (keys.length === 0) return;
  await tx.send('delete from dead where key in (??)', [keys]);
  await dropUnreferencedContents(tx, keys);
}
