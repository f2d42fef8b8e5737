/** Makes docs/conformance.md from the statements. That a statement without a remark passes is what its test sees to. */
import type { Section, Statement } from './statement.ts';

export interface Part {
  /** What the statements are numbered after. */
  title: string;
  about: string;
  sections: readonly Section[];
}

export function conformanceDocument(parts: readonly Part[]): string {
  const all = parts.flatMap(({ sections }) => sections.flatMap(({ statements }) => statements));
  const results = all.map((statement) => resultOf(statement));
  const count = (kind: Result['kind']): number => results.filter((result) => result.kind === kind).length;
  return `# Conformance

What the interface promises, statement by statement, and what Waypost does. Each statement is tried over HTTP on a whole
server by the test of its number in \`test/conformance\`, in every \`npm test\`; this page is made by those tests and cannot
differ from them (\`npm test -- test/conformance/document.test.ts --update\` writes it anew). The words are ours.

| Result | Statements |
|---|---|
| holds | ${count('holds')} |
| deviates, with a reason | ${count('deviates')} |

${parts.map((part) => partText(part)).join('\n')}
${OTHER_DEVIATIONS}`;
}

/** Where we chose differently from the contract in what its checklist does not number. */
const OTHER_DEVIATIONS = `## Deviations that no statement covers

- A request that finds no room in memory, or whose commit waits in too long a line, is answered 503 with \`Retry-After\`;
  the contract knows no such answer. The official JavaScript client repeats only what had no answer at all: it throws, and a
  step of a workflow that meets a 503 is executed again with the next attempt of its delivery.
- What one request may name is bounded: 1000 ids, 100 values of a filter, 1000 items of a batch unless a setting says
  otherwise. More is 400, never a part of what was asked for.
- A step of a workflow run is recorded once, whatever its result: when an endpoint that crashed executes it again and
  publishes something else, the first result stays ([why](decisions/014-runs-are-journals-of-messages.md)). The contract
  compares contents.
- What is wrong with a message of a running workflow is 422, where the contract leaves the status open: to client
  libraries 400 says that the run is over.
- The flat log of a run also shows the message that tells of its failure, with the call type \`failureCall\`.
- Giving up a failure callback is answered 200 in place of the unconfirmed 302, which would lead nowhere.
- The default sizes and counts are those of [settings.md](settings.md), not those of the hosted service.
`;

function partText({ title, about, sections }: Part): string {
  const tables = sections.map((section) => `### ${section.title}\n\n${tableOf(section)}`);
  return `## ${title}\n\n${about}\n\n${tables.join('\n')}`;
}

function tableOf({ statements }: Section): string {
  const rows = statements.map((statement) => {
    const { kind, remark } = resultOf(statement);
    return `| ${statement.id} | ${statement.text} | ${remark === undefined ? kind : `**${kind}**: ${remark}`} |\n`;
  });
  return `| | Statement | Result |\n|---|---|---|\n${rows.join('')}`;
}

interface Result {
  kind: 'holds' | 'deviates';
  remark?: string;
}

function resultOf({ deviation }: Statement): Result {
  return deviation === undefined ? { kind: 'holds' } : { kind: 'deviates', remark: deviation };
}
