/** Groups items by project. Rows are keyed by project first, so each project has its own statement. */
import type { ProjectId } from '../../../engine/model.ts';

/** The results of `pick` for `items`, by project. Each result occurs once per project, in the order of the items. */
export function byProject<Item extends { projectId: ProjectId }, Value extends string | number>(
  items: readonly Item[],
  pick: (item: Item) => Value,
): Map<ProjectId, Value[]> {
  const valuesByProject = new Map<ProjectId, Set<Value>>();
  for (const item of items) {
    const values = valuesByProject.get(item.projectId) ?? new Set();
    valuesByProject.set(item.projectId, values.add(pick(item)));
  }
  return new Map([...valuesByProject].map(([projectId, values]) => [projectId, [...values]]));
}
