/**
 * Searches a long list whose filter may match few rows: one limited window of rows at a time, each in its own snapshot.
 */
import type { ProjectId } from '../../../engine/model.ts';
import type { Queries } from '../../driver.ts';
import type { Conditions } from './filter.ts';
import { cutPage, type PageRows, type Position, type Slice, sliceSql } from './page.ts';

/** Rows examined in one snapshot. A filter that matches few rows needs several windows. */
const WINDOW = 20_000;

/** Rows examined in one snapshot when most rows pass the filter. */
const SMALL_WINDOW = 1_000;

/** A list of a project, ordered by time, then by a number. An index has the columns project, time and number. */
interface List {
  table: string;
  timeColumn: string;
  numberColumn: string;
}

export const LOGS: List = { table: 'logs', timeColumn: 'at_ms', numberColumn: 'seq' };
export const DEAD: List = { table: 'dead', timeColumn: 'failed_at_ms', numberColumn: 'key' };
export const RUNS: List = { table: 'runs', timeColumn: 'created_at_ms', numberColumn: 'key' };

interface WindowQuery {
  list: List;
  /** Columns of the list, besides its time and number, that the rest of the query uses as columns of `w`. */
  reads: readonly string[];
  /** The selected fields of each row, besides its position. */
  selects: readonly string[];
  /** Joins that the filter needs. */
  joins: string;
  /** A condition on the examined rows, which must be the condition of a partial index of the list. */
  within?: string;
  filter: Conditions;
  /** Whether most rows pass the filter. */
  passesMost: boolean;
}

/** Reads the page of a list that `slice` requests, from one window of rows. */
export async function pageOfWindow<Row extends Position>(
  queries: Queries,
  projectId: ProjectId,
  slice: Slice,
  { list, reads, selects, joins, within, filter, passesMost }: WindowQuery,
): Promise<PageRows<Row>> {
  const { table, timeColumn, numberColumn } = list;
  const { texts, params, direction } = sliceSql(slice, timeColumn, numberColumn);
  const range = ['project_id = ?', ...(within ? [within] : []), ...texts].join(' and ');
  const order = `order by ${timeColumn} ${direction}, ${numberColumn} ${direction}`;
  const isFiltered = filter.texts.length > 0;
  const window = passesMost ? Math.max(slice.count + 1, isFiltered ? SMALL_WINDOW : 0) : WINDOW;
  const rows = await queries.query<Row>(
    `select ${[`w.${timeColumn} as "timeMs"`, `w.${numberColumn} as n`, ...selects].join(', ')}
     from (select ${[timeColumn, numberColumn, ...reads].join(', ')} from ${table} where ${range} ${order} limit ?) w
     ${joins} ${isFiltered ? `where ${filter.texts.join(' and ')}` : ''}
     order by w.${timeColumn} ${direction}, w.${numberColumn} ${direction} limit ?`,
    [projectId, ...params, window, ...filter.params, slice.count + 1],
  );
  if (!isFiltered || rows.length > slice.count) return cutPage(rows, slice.count, undefined);
  const [end] = await queries.query<Position>(
    `select ${timeColumn} as "timeMs", ${numberColumn} as n from ${table} where ${range} ${order} limit 1 offset ?`,
    [projectId, ...params, window - 1],
  );
  return cutPage(rows, slice.count, end);
}

interface FewQuery {
  list: List;
  /** The `from` clause, in which the list is named `alias`. */
  from: string;
  alias?: string;
  /** The selected fields of each row, besides its position. */
  selects?: readonly string[];
  /** Conditions for which an index finds the few rows. */
  filter: Conditions;
}

/** Reads the page of a list that `slice` requests, if few rows can match. */
export async function pageOfFew<Row extends Position>(
  queries: Queries,
  projectId: ProjectId,
  slice: Slice,
  { list, from, alias = 'w', selects = [], filter }: FewQuery,
): Promise<PageRows<Row>> {
  const time = `${alias}.${list.timeColumn}`;
  const number = `${alias}.${list.numberColumn}`;
  const { texts, params, direction } = sliceSql(slice, time, number);
  const rows = await queries.query<Row>(
    // With the plus, the planner uses an index of the filter and does not walk the project's whole list in order.
    `select ${[`${time} as "timeMs"`, `${number} as n`, ...selects].join(', ')} from ${from}
     where ${[...filter.texts, `+${alias}.project_id = ?`, ...texts].join(' and ')}
     order by ${time} ${direction}, ${number} ${direction} limit ?`,
    [...filter.params, projectId, ...params, slice.count + 1],
  );
  return cutPage(rows, slice.count, undefined);
}

interface KeysQuery {
  table: 'messages' | 'runs';
  /** Columns of the table, besides `key`, that `joins` and `filter` use as columns of `w`. */
  reads: readonly string[];
  joins: string;
  filter: Conditions;
}

/** Keys that match, oldest first. */
export interface WindowKeys {
  keys: number[];
  /** Where the search continues; absent when all keys were examined. */
  nextAfterKey?: number;
}

/** Up to `limit` matching keys after `afterKey`, from one window of the rows of all projects, ordered by key. */
export async function keysOfWindow(
  queries: Queries,
  { afterKey, limit }: { afterKey: number; limit: number },
  { table, reads, joins, filter }: KeysQuery,
): Promise<WindowKeys> {
  const found = await queries.query<{ key: number }>(
    `select w.key from (select ${['key', ...reads].join(', ')} from ${table} where key > ? order by key limit ?) w
     ${joins} where ${filter.texts.join(' and ')} order by w.key limit ?`,
    [afterKey, WINDOW, ...filter.params, limit],
  );
  const keys = found.map(({ key }) => key);
  const lastKey = keys.at(-1);
  if (keys.length === limit && lastKey !== undefined) return { keys, nextAfterKey: lastKey };
  const [end] = await queries.query<{ key: number }>(
    `select key from ${table} where key > ? order by key limit 1 offset ?`,
    [afterKey, WINDOW - 1],
  );
  return end ? { keys, nextAfterKey: end.key } : { keys };
}
