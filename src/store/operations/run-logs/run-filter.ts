/**
 * Translates a filter of run logs (contract W 17.3) into SQL conditions on `runs r` and the first message `contents c`.
 */
import type { RunAttributes } from '../../../engine/runs/logs/log-store.ts';
import type { SqlParam } from '../../driver.ts';
import { addCondition, type Conditions, contentConditions } from '../lists/filter.ts';

/** Conditions on a run. Attributes that are not in the row of the run are in the content of its first message. */
export function runConditions(filter: RunAttributes): Conditions {
  const { runId, runCreatedAtMs, runUrl, ...attributes } = filter;
  const conditions = contentConditions(attributes);
  const among = (column: string, values: readonly SqlParam[] | undefined): void => {
    if (!values) return;
    addCondition(conditions, `${column} in (??)`, values as SqlParam);
  };
  among('r.id', runId);
  among('r.url', runUrl);
  if (runCreatedAtMs !== undefined) addCondition(conditions, 'r.created_at_ms = ?', runCreatedAtMs);
  return conditions;
}

/** Selects the keys of a project's runs that match `conditions`. The first parameter is the project. */
export function selectRuns({ texts }: Conditions): string {
  const where = ['r.project_id = ?', ...texts].join(' and ');
  return `select r.key from runs r left lookup contents c on (c.key = r.key) where ${where}`;
}
