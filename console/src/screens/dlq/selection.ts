/** Which entries of the DLQ are meant: some by their ids, or all that match the filter. Pure. */
export type Selection = { kind: 'some'; ids: ReadonlySet<string> } | { kind: 'all' };

export const NONE: Selection = { kind: 'some', ids: new Set() };

export function isSelected(selection: Selection, id: string): boolean {
  return selection.kind === 'all' || selection.ids.has(id);
}

/** After all were meant, one that is taken out leaves the others that are loaded. */
export function toggled(selection: Selection, id: string, loaded: readonly string[]): Selection {
  const ids = new Set(selection.kind === 'all' ? loaded : selection.ids);
  if (!ids.delete(id)) ids.add(id);
  return { kind: 'some', ids };
}
