/** Which active runs does a bulk cancel mean (contract W 17.2)? */
import type { ProjectId } from '../../../engine/model.ts';
import type { ActiveRunFilter } from '../../../engine/runs/dead-run-store.ts';
import type { RunKey } from '../../../workflow/model.ts';
import type { Queries } from '../../driver.ts';
import { type Conditions, contentConditions } from '../filter.ts';
import { longRead } from '../operation.ts';
import { WINDOW } from '../page.ts';
import { RUN_STATE } from './run-rows.ts';

export interface ActiveRunKeysArgs {
  projectId: ProjectId;
  filter: ActiveRunFilter;
  afterKey: RunKey;
  limit: number;
}

export interface ActiveRunKeys {
  keys: RunKey[];
  /** Where to look on; absent when all were seen. */
  nextAfterKey?: RunKey;
}

/** Oldest first, from a bounded stretch of the table: keys grow with time. */
export const activeRunKeys = longRead(async (queries: Queries, args: ActiveRunKeysArgs): Promise<ActiveRunKeys> => {
  const { projectId, filter, afterKey, limit } = args;
  const { texts, params } = runConditions(filter);
  if (filter.fromMs !== undefined) {
    texts.push('w.created_at_ms >= ?');
    params.push(filter.fromMs);
  }
  if (filter.toMs !== undefined) {
    texts.push('w.created_at_ms <= ?');
    params.push(filter.toMs);
  }
  const found = await queries.query<{ key: number }>(
    `select w.key from
       (select key, project_id, state, created_at_ms from runs where key > ? order by key limit ?) w
       lookup journal j on (j.run_key = w.key and j.position = 0)
       lookup contents c on (c.key = j.key)
     where ${['w.project_id = ?', `w.state = ${RUN_STATE.RUN_STARTED}`, ...texts].join(' and ')}
     order by w.key limit ?`,
    [afterKey, WINDOW, projectId, ...params, limit],
  );
  const keys = found.map(({ key }) => key);
  const lastKey = keys.at(-1);
  if (keys.length === limit && lastKey !== undefined) return { keys, nextAfterKey: lastKey };
  const [end] = await queries.query<{ key: number }>(
    'select key from runs where key > ? order by key limit 1 offset ?',
    [afterKey, WINDOW - 1],
  );
  return end ? { keys, nextAfterKey: end.key } : { keys };
});

/** What a run was triggered with, over the content `c` of the first entry of its journal. */
export function runConditions(filter: ActiveRunFilter): Conditions {
  const { urlPrefix, ...attributes } = filter;
  const conditions = contentConditions(attributes);
  if (urlPrefix) {
    // Case-sensitive in both databases and without wildcards, unlike `like`.
    conditions.texts.push(`(${urlPrefix.map(() => 'substr(c.url, 1, ?) = ?').join(' or ')})`);
    conditions.params.push(...urlPrefix.flatMap((prefix) => [[...prefix].length, prefix]));
  }
  return conditions;
}
