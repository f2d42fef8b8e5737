/** Finds the active runs of a bulk cancel (contract W 17.2). */
import type { ProjectId } from '../../../engine/model.ts';
import type { ActiveRunFilter } from '../../../engine/runs/dead/dead-run-store.ts';
import type { RunKey } from '../../../workflow/model.ts';
import type { Queries } from '../../driver.ts';
import { addCondition, type Conditions, contentConditions } from '../lists/filter.ts';
import { keysOfWindow, type WindowKeys } from '../lists/windows.ts';
import { longRead } from '../operation.ts';
import { RUN_STATE } from './run-rows.ts';

interface ActiveRunKeysArgs {
  projectId: ProjectId;
  filter: ActiveRunFilter;
  afterKey: RunKey;
  limit: number;
}

/** The keys of active runs that match, oldest first, from one window of the table. */
export const activeRunKeys = longRead((queries: Queries, args: ActiveRunKeysArgs): Promise<WindowKeys> => {
  const { projectId, filter } = args;
  const conditions = runConditions(filter);
  addCondition(conditions, `w.project_id = ? and w.state = ${RUN_STATE.RUN_STARTED}`, projectId);
  if (filter.fromMs !== undefined) addCondition(conditions, 'w.created_at_ms >= ?', filter.fromMs);
  if (filter.toMs !== undefined) addCondition(conditions, 'w.created_at_ms <= ?', filter.toMs);
  return keysOfWindow(queries, args, {
    table: 'runs',
    reads: ['project_id', 'state', 'created_at_ms'],
    joins: `lookup journal j on (j.run_key = w.key and j.position = 0)
       lookup contents c on (c.key = j.key)`,
    filter: conditions,
  });
});

/** Conditions on the message that triggered a run: the content `c` of the first entry of its journal. */
export function runConditions(filter: ActiveRunFilter): Conditions {
  const { urlPrefix, ...attributes } = filter;
  const conditions = contentConditions(attributes);
  if (urlPrefix) {
    // This is case-sensitive in both databases and has no wildcards, unlike `like`.
    const text = `(${urlPrefix.map(() => 'substr(c.url, 1, ?) = ?').join(' or ')})`;
    addCondition(conditions, text, ...urlPrefix.flatMap((prefix) => [[...prefix].length, prefix]));
  }
  return conditions;
}
