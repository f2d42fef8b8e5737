/** The selected DLQ entries: some entries by id, or all entries that match the filter. Pure. */
export type Selection = { kind: 'some'; ids: ReadonlySet<string> } | { kind: 'all' };

export const NONE: Selection = { kind: 'some', ids: new Set() };

export function isSelected(selection: Selection, id: string): boolean {
  return selection.kind === 'all' || selection.ids.has(id);
}

/** Deselecting one entry after "all" selects the other loaded entries. */
export function toggled(selection: Selection, id: string, loaded: readonly string[]): Selection {
  const ids = new Set(selection.kind === 'all' ? loaded : selection.ids);
  if (!ids.delete(id)) ids.add(id);
  return { kind: 'some', ids };
}
