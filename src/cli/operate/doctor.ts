/** `waypost doctor`: checks that the data in a store is consistent. */

import type { Examination } from '../../admin/examine.ts';
import type { ExaminedCell } from '../../cells/operate/examine-cells.ts';
import { parseConfig } from '../../config/parse.ts';
import { EXIT } from '../command.ts';
import { configured } from '../configured.ts';
import { censusLine } from './census.ts';

export const doctor = configured(
  'doctor',
  {
    about: `Usage: waypost doctor [--json] [options]

Reads the database and checks what must hold between its rows: that nothing is orphaned, that no queue or flow-control
key holds a message back without a reason; that this version may work with the store, and that the encryption key opens
the signing keys. Does so in every cell, and checks that each has the projects that the directory
puts there and that no move of a project is stuck. Changes nothing. Ends with ${EXIT.failed} when something is wrong.

The store is the one that these options and the variables of "waypost serve" name, and not that of the server that QSTASH_URL
and "waypost login" name. The first line says which.`,
    options: {
      '--json': 'Print the findings as one JSON object.',
    },
    settings: 'store',
    example: 'doctor --data-dir /var/lib/waypost',
  },
  async (given, terminal) => {
    const { examineInstallation } = await import('../../cells/operate/examine-cells.ts');
    const { keptIn } = await import('../../admin/open-store.ts');
    const config = parseConfig(terminal.env, given.settings);
    const { first: examination, firstName, others } = await examineInstallation(config);
    const isSound = [examination, ...others.map((cell) => cell.examination)].every(isSoundBy);
    if (given.has('json')) {
      const cells = firstName !== undefined && { cell: firstName, cells: others.map(cellView) };
      terminal.print(`${JSON.stringify({ store: keptIn(config), isSound, ...examination, ...cells })}\n`);
    } else {
      const first = firstName === undefined ? report(examination) : reportOf({ name: firstName, examination });
      terminal.print([`store: ${keptIn(config)}\n`, first, ...others.map(reportOf)].join('\n'));
    }
    return isSound ? EXIT.ok : EXIT.failed;
  },
);

/** A cell that cannot be reached is not known to be sound. */
function isSoundBy(examination: Examination | undefined): boolean {
  return examination?.findings.every(({ offenders }) => offenders.length === 0) ?? false;
}

function cellView({ name, examination }: ExaminedCell): object {
  return examination ? { name, isSound: isSoundBy(examination), ...examination } : { name, isAway: true };
}

function reportOf({ name, examination }: ExaminedCell): string {
  return `cell ${name}: ${examination ? report(examination) : 'cannot be reached\n'}`;
}

function report({ census, findings }: Examination): string {
  const lines = [censusLine(census), ''];
  for (const { statement, offenders } of findings) {
    lines.push(`${offenders.length === 0 ? 'ok  ' : 'FAIL'}  ${statement}`);
    for (const name of offenders) lines.push(`        ${name}`);
  }
  return `${lines.join('\n')}\n`;
}
