/** `waypost backup`: writes a whole store into one file, while its servers run. */
import { storeSettingsHelp } from '../config/page.ts';
import { parseConfig } from '../config/parse.ts';
import { censusLine } from './census.ts';
import { type Command, EXIT, printJson, required, takeSwitch, takeValue } from './command.ts';
import { reportCopy } from './progress.ts';

export const backup: Command = {
  help: () =>
    `Usage: waypost backup --to <file or folder> [--json] [options]

Writes what is committed at one moment into one SQLite file, checks the file, and gives it its name once it is whole. The
server, if one runs, goes on. "waypost restore" makes a store of it. A store on PostgreSQL is copied row by row; large ones
are better backed up with PostgreSQL's own tools.

The encryption key is not in the backup: without it the signing keys in there cannot be read. Keep a copy of it elsewhere.

  --to <file or folder>
      A file that is not there yet, such as waypost.db; in a folder, which must be there, it is named after the time.
  --json
      Print JSON.
${storeSettingsHelp()}
Example: waypost backup --to /backups
`,
  async run(args, terminal) {
    const { given: asJson, rest: afterJson } = takeSwitch(args, '--json');
    const { value, rest } = takeValue(afterJson, '--to');
    const to = required(value, 'backup: --to <file or folder>');
    const { backUp, STEPS } = await import('../operations/backup.ts');
    const { tell, onProgress, end } = reportCopy(terminal);
    const onStep = (step: (typeof STEPS)[number]): void =>
      tell(STEPS.indexOf(step), STEPS.length, `steps done, next: ${step}`);
    const config = parseConfig(terminal.env, rest);
    const { file, bytes, census } = await backUp(config, to, { onStep, onProgress }).finally(end);
    if (asJson) printJson(terminal, { file, bytes, census });
    else terminal.print(`${file}, ${bytes} bytes: ${censusLine(census)}\n`);
    return EXIT.ok;
  },
};
