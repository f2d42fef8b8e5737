/** `waypost restore`: makes a backup the store. */
import { storeSettingsHelp } from '../config/page.ts';
import { parseConfig } from '../config/parse.ts';
import type { Restored } from '../operations/restore.ts';
import { censusLine } from './census.ts';
import { type Command, EXIT, printJson, required, takeSwitch, takeValue } from './command.ts';
import { reportCopy } from './progress.ts';

export const restore: Command = {
  help: () =>
    `Usage: waypost restore --from <file> [--overwrite] [--json] [options]

Makes the file of "waypost backup" the store of the data folder, or of DATABASE_URL, whichever kind of database that is. No
server may run on it. A SQLite store is replaced in one step; into PostgreSQL rows are copied, and when that is cut short the
same command goes on where it stopped: no server starts on the store before it is whole.

What was delivered after the backup was made is delivered once more.

  --from <file>
      The backup. It is not changed.
  --overwrite
      Replace a store that has data, and begin anew what was cut short.
  --json
      Print JSON.
${storeSettingsHelp()}
Example: waypost restore --from /backups/waypost.db
`,
  async run(args, terminal) {
    const { given: asJson, rest: afterJson } = takeSwitch(args, '--json');
    const { given: overwrite, rest: afterOverwrite } = takeSwitch(afterJson, '--overwrite');
    const { value, rest } = takeValue(afterOverwrite, '--from');
    const from = required(value, 'restore: --from <file>');
    const { onProgress, end } = reportCopy(terminal);
    const { restore: restoreStore } = await import('../operations/restore.ts');
    const restored = await restoreStore(parseConfig(terminal.env, rest), { from, overwrite, onProgress }).finally(end);
    if (asJson) printJson(terminal, restored);
    else terminal.print(`Restored: ${censusLine(restored.census)}\n`);
    const remark = KEY_REMARKS[restored.key];
    if (remark !== undefined) terminal.complain(`waypost: ${remark}\n`);
    return EXIT.ok;
  },
};

const KEY_REMARKS: Record<Restored['key'], string | undefined> = {
  fits: undefined,
  'not needed': undefined,
  missing:
    'there is no encryption key yet: put the encryption.key that belongs to this backup into the data folder, or set WAYPOST_ENCRYPTION_KEY',
  other:
    'the encryption key is not the one that the signing keys of this backup are encrypted with: no server starts on it without that',
};
