/** Generates docs/conformance.md from the statements. The test of a statement fails if the statement is wrong. */
import type { Section, Statement } from './statement.ts';

export interface Part {
  /** The heading of a group of statements that are numbered together. */
  title: string;
  about: string;
  sections: readonly Section[];
}

export function conformanceDocument(parts: readonly Part[]): string {
  const all = parts.flatMap(({ sections }) => sections.flatMap(({ statements }) => statements));
  const results = all.map((statement) => resultOf(statement));
  const count = (kind: Result['kind']): number => results.filter((result) => result.kind === kind).length;
  return `# Conformance

Each statement of the interface, and whether Waypost complies. The test with the number of the statement, in \`test/conformance\`, checks it over
HTTP on a whole server in every \`npm test\`. This page is generated from those tests
(\`npm test -- test/conformance/document.test.ts --update\`).

| Result | Statements |
|---|---|
| holds | ${count('holds')} |
| deviates, with a reason | ${count('deviates')} |

${parts.map((part) => partText(part)).join('\n')}
${OTHER_DEVIATIONS}`;
}

/** Deviations from the contract outside its numbered checklist. */
const OTHER_DEVIATIONS = `## Deviations that no statement covers

- A request gets 503 with \`Retry-After\` if there is no memory for it, or if its commit would have to wait too long; the contract has no such response.
  The official JavaScript client retries only requests without a response: it throws, and a workflow step that gets a 503 is executed again with the
  next attempt of its delivery.
- One request may contain at most 1000 ids, 100 values of a filter, and 1000 items of a batch, unless a setting says otherwise. More gets 400, and no part
  of it is done.
- A workflow step is recorded once, whatever its result: if an endpoint that crashed executes it again and publishes a different result, the first
  one remains ([why](decisions/014-runs-are-journals-of-messages.md)). The contract compares contents.
- An invalid message of an active workflow run gets 422, where the contract leaves the status open: client libraries take 400 to mean that the run is over.
- The flat log of a run also shows the message of its failure callback, with the call type \`failureCall\`.
- Cancelling a failure callback gets 200 instead of the unconfirmed 302, which would have no target.
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
