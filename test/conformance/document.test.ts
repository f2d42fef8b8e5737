/** Checks that docs/conformance.md agrees with the statements and their tests, and that no statement is missing. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { CHECKPOINTS } from './checkpoints/index.ts';
import { CLIENTS } from './clients/index.ts';
import { INTERFACE } from './interface/index.ts';
import { MESSAGING } from './messaging/index.ts';
import { conformanceDocument, type Part } from './support/document.ts';
import type { Section } from './support/statement.ts';
import { WORKFLOW } from './workflow/index.ts';

/** How many statements the checklists have (contract M 29, W 26). */
const CHECKLISTS = {
  M: statementsOf('docs/contract/messaging.md', '## 29. Conformance checklist'),
  W: statementsOf('docs/contract/workflow.md', '## 26. Checklist'),
};

const PARTS: readonly Part[] = [
  {
    title: 'Messaging checklist',
    about: `M1 to M${CHECKLISTS.M} are the statements of contract M 29 (\`docs/contract/messaging.md\`), under their numbers there.`,
    sections: MESSAGING,
  },
  {
    title: 'Workflow checklist',
    about: `W1 to W${CHECKLISTS.W} are the statements of contract W 26 (\`docs/contract/workflow.md\`), under their numbers there.`,
    sections: WORKFLOW,
  },
  {
    title: 'Checkpoints',
    about: '`docs/contract/checkpoints.md` numbers its rules by section; these statements have numbers of our own.',
    sections: CHECKPOINTS,
  },
  {
    title: 'Interface',
    about: '`docs/contract/interface.md` numbers no statements; these have numbers of our own.',
    sections: INTERFACE,
  },
  {
    title: 'Clients',
    about: 'From contract M 0.3 and 23.',
    sections: CLIENTS,
  },
];

const SECTIONS: readonly Section[] = PARTS.flatMap(({ sections }) => sections);

function idsOf(sections: readonly Section[]): string[] {
  return sections.flatMap(({ statements }) => statements.map(({ id }) => id));
}

function numbered(prefix: string, length: number): string[] {
  return Array.from({ length }, (_, index) => `${prefix}${index + 1}`);
}

function statementsOf(file: string, heading: string): number {
  const contract = readFileSync(join(import.meta.dirname, '../..', file), 'utf8');
  const [, checklist = ''] = contract.split(`\n${heading}\n`);
  return checklist.match(/^\d+\. /gm)?.length ?? 0;
}

describe('the statements', () => {
  it('are those of the checklists, each once, in order', () => {
    expect(idsOf(MESSAGING)).toEqual(numbered('M', CHECKLISTS.M));
    expect(idsOf(WORKFLOW)).toEqual(numbered('W', CHECKLISTS.W));
    for (const [prefix, sections] of Object.entries({ K: CHECKPOINTS, I: INTERFACE, C: CLIENTS })) {
      const ids = idsOf(sections);
      expect(ids).toEqual(numbered(prefix, ids.length));
    }
  });

  it.each(SECTIONS)('are sentences: $title', ({ statements }) => {
    for (const { text } of statements) expect(text).toMatch(/^[^|]+\.$/);
  });
});

it('docs/conformance.md is made of the statements (--update writes it)', async () => {
  const page = join(import.meta.dirname, '../../docs/conformance.md');
  await expect(conformanceDocument(PARTS)).toMatchFileSnapshot(page);
});
