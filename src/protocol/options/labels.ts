import { trimBlanks } from '../headers.ts';
import { checkName } from '../names.ts';

/**
 * The labels of a comma-separated list: blanks trimmed, empty and repeated elements dropped, order kept
 * (contract M 4.2). Throws `invalid_name` (400), naming `header`, for a label that breaks the grammar of names.
 */
export function parseLabels(text: string, header: string): string[] {
  const labels = new Set<string>();
  for (const element of text.split(',')) {
    const label = trimBlanks(element);
    if (label === '') continue;
    checkName('label', label, header);
    labels.add(label);
  }
  return [...labels];
}
