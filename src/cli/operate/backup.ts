/** `waypost backup`: writes a whole store into one file, while its servers run. */
import { parseConfig } from '../../config/parse.ts';
import { EXIT, printJson, required } from '../command.ts';
import { commandWithSettings } from '../command-with-settings.ts';
import { reportCopy } from '../progress.ts';
import { censusLine } from './census.ts';

export const backup = commandWithSettings(
  'backup',
  {
    about: `Usage: waypost backup --to <file or folder> [--json] [options]

Writes a consistent snapshot of the store into one SQLite file, checks the file, and renames it once it is complete. A
running server continues. "waypost restore" restores the file. A PostgreSQL store is copied row by row; back up large ones
with PostgreSQL's own tools.

The backup does not contain the encryption key, which its signing keys are encrypted with. Keep a copy of it elsewhere.`,
    options: {
      '--to <file or folder>':
        'A new file, such as waypost.db, or an existing folder, where the file is named after the current time.',
      '--json': 'Print JSON.',
    },
    settings: 'store',
    example: 'backup --to /backups',
  },
  async (parsed, terminal) => {
    const to = required(parsed.value('to'), 'backup: --to <file or folder>');
    const { backUp, STEPS } = await import('../../admin/backup.ts');
    const { report, onProgress, end } = reportCopy(terminal);
    const onStep = (step: (typeof STEPS)[number]): void =>
      report(STEPS.indexOf(step), STEPS.length, `steps done, next: ${step}`);
    const config = parseConfig(terminal.env, parsed.settings);
    const { file, bytes, census } = await backUp(config, to, { onStep, onProgress }).finally(end);
    if (parsed.has('json')) printJson(terminal, { file, bytes, census });
    else terminal.print(`${file}, ${bytes} bytes: ${censusLine(census)}\n`);
    return EXIT.ok;
  },
);
