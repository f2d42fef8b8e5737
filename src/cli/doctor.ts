/** `waypost doctor`: checks that the data in a store is consistent. */
import { storeSettingsHelp } from '../config/page.ts';
import { parseConfig } from '../config/parse.ts';
import type { Examination } from '../operations/examine.ts';
import { censusLine } from './census.ts';
import { type Command, EXIT, takeSwitch } from './command.ts';

export const doctor: Command = {
  help: () =>
    `Usage: waypost doctor [--json] [options]

Reads the database and checks what must hold between its rows: that nothing is orphaned, that no queue or flow-control
key holds a message back without a reason. Changes nothing. Ends with ${EXIT.failed} when something is wrong.

  --json
      Print the findings as one JSON object.
${storeSettingsHelp()}
Example: waypost doctor --data-dir /var/lib/waypost
`,
  async run(args, terminal) {
    const { given: asJson, rest } = takeSwitch(args, '--json');
    const { examineStore } = await import('../operations/examine.ts');
    const examination = await examineStore(parseConfig(terminal.env, rest));
    const isSound = examination.findings.every(({ offenders }) => offenders.length === 0);
    terminal.print(asJson ? `${JSON.stringify({ isSound, ...examination })}\n` : report(examination));
    return isSound ? EXIT.ok : EXIT.failed;
  },
};

function report({ census, findings }: Examination): string {
  const lines = [censusLine(census), ''];
  for (const { statement, offenders } of findings) {
    lines.push(`${offenders.length === 0 ? 'ok  ' : 'FAIL'}  ${statement}`);
    for (const name of offenders) lines.push(`        ${name}`);
  }
  return `${lines.join('\n')}\n`;
}
