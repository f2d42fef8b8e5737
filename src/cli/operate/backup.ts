/** `waypost backup`: writes a whole store into one file, while its servers run. */
import { parseConfig } from '../../config/parse.ts';
import { EXIT, printJson, required } from '../command.ts';
import { configured } from '../configured.ts';
import { reportCopy } from '../progress.ts';
import { censusLine } from './census.ts';

export const backup = configured(
  'backup',
  {
    about: `Usage: waypost backup --to <file or folder> [--json] [options]

Writes what is committed at one moment into one SQLite file, checks the file, and gives it its name once it is whole. The
server, if one runs, goes on. "waypost restore" makes a store of it. A store on PostgreSQL is copied row by row; large ones
are better backed up with PostgreSQL's own tools.

The encryption key is not in the backup: without it the signing keys in there cannot be read. Keep a copy of it elsewhere.`,
    options: {
      '--to <file or folder>':
        'A file that is not there yet, such as waypost.db; in a folder, which must be there, it is named after the time.',
      '--json': 'Print JSON.',
    },
    settings: 'store',
    example: 'backup --to /backups',
  },
  async (given, terminal) => {
    const to = required(given.value('to'), 'backup: --to <file or folder>');
    const { backUp, STEPS } = await import('../../admin/backup.ts');
    const { tell, onProgress, end } = reportCopy(terminal);
    const onStep = (step: (typeof STEPS)[number]): void =>
      tell(STEPS.indexOf(step), STEPS.length, `steps done, next: ${step}`);
    const config = parseConfig(terminal.env, given.settings);
    const { file, bytes, census } = await backUp(config, to, { onStep, onProgress }).finally(end);
    if (given.has('json')) printJson(terminal, { file, bytes, census });
    else terminal.print(`${file}, ${bytes} bytes: ${censusLine(census)}\n`);
    return EXIT.ok;
  },
);
