/** `waypost doctor`: checks that the data in a store is consistent. */

import type { Examination } from '../../admin/examine.ts';
import type { ExaminedCell } from '../../cells/operate/examine-cells.ts';
import { parseConfig } from '../../config/parse.ts';
import { EXIT } from '../command.ts';
import { commandWithSettings } from '../command-with-settings.ts';
import { censusLine } from './census.ts';

export const doctor = commandWithSettings(
  'doctor',
  {
    about: `Usage: waypost doctor [--json] [options]

Reads the database and checks its invariants: that no row is orphaned, that no queue or flow-control key blocks a message
without a reason, that the store's schema fits this version, and that the encryption key decrypts the signing keys. It
checks every cell, that each one has the projects that the directory assigns to it, and that no move of a project is
stuck. Changes nothing. Exits with ${EXIT.failed} when a check fails.

It checks the store that these options and the variables of "waypost serve" select, not the server of QSTASH_URL and
"waypost login". The first line names the store.`,
    options: {
      '--json': 'Print the findings as one JSON object.',
    },
    settings: 'store',
    example: 'doctor --data-dir /var/lib/waypost',
  },
  async (parsed, terminal) => {
    const { examineInstallation } = await import('../../cells/operate/examine-cells.ts');
    const { describeDataLocation } = await import('../../admin/open-store.ts');
    const config = parseConfig(terminal.env, parsed.settings);
    const { first: examination, firstName, others } = await examineInstallation(config);
    const isSound = [examination, ...others.map((cell) => cell.examination)].every(isConsistent);
    if (parsed.has('json')) {
      const cells = firstName !== undefined && { cell: firstName, cells: others.map(cellView) };
      terminal.print(`${JSON.stringify({ store: describeDataLocation(config), isSound, ...examination, ...cells })}\n`);
    } else {
      const first = firstName === undefined ? report(examination) : reportOf({ name: firstName, examination });
      terminal.print([`store: ${describeDataLocation(config)}\n`, first, ...others.map(reportOf)].join('\n'));
    }
    return isSound ? EXIT.ok : EXIT.failed;
  },
);

/** False for an unreachable cell, which was not checked. */
function isConsistent(examination: Examination | undefined): boolean {
  return examination?.findings.every(({ offenders }) => offenders.length === 0) ?? false;
}

function cellView({ name, examination }: ExaminedCell): object {
  return examination ? { name, isSound: isConsistent(examination), ...examination } : { name, isAway: true };
}

function reportOf({ name, examination }: ExaminedCell): string {
  return `cell ${name}: ${examination ? report(examination) : 'unreachable\n'}`;
}

function report({ census, findings }: Examination): string {
  const lines = [censusLine(census), ''];
  for (const { statement, offenders } of findings) {
    lines.push(`${offenders.length === 0 ? 'ok  ' : 'FAIL'}  ${statement}`);
    for (const name of offenders) lines.push(`        ${name}`);
  }
  return `${lines.join('\n')}\n`;
}
