/** `waypost restore`: makes a backup the store. */

import type { Restored } from '../../admin/restore.ts';
import { parseConfig } from '../../config/parse.ts';
import { EXIT, printJson, required } from '../command.ts';
import { configured } from '../configured.ts';
import { reportCopy } from '../progress.ts';
import { censusLine } from './census.ts';

export const restore = configured(
  'restore',
  {
    about: `Usage: waypost restore --from <file> [--overwrite] [--json] [options]

Makes the file of "waypost backup" the store of the data folder, or of DATABASE_URL, whichever kind of database that is. No
server may run on it. A SQLite store is replaced in one step; into PostgreSQL rows are copied, and when that is cut short the
same command goes on where it stopped: no server starts on the store before it is whole.

What was delivered after the backup was made is delivered once more.`,
    options: {
      '--from <file>': 'The backup. It is not changed.',
      '--overwrite': 'Replace a store that has data, and begin anew what was cut short.',
      '--json': 'Print JSON.',
    },
    settings: 'store',
    example: 'restore --from /backups/waypost.db',
  },
  async (given, terminal) => {
    const overwrite = given.has('overwrite');
    const from = required(given.value('from'), 'restore: --from <file>');
    const { onProgress, end } = reportCopy(terminal);
    const { restore: restoreStore } = await import('../../admin/restore.ts');
    const restored = await restoreStore(parseConfig(terminal.env, given.settings), {
      from,
      overwrite,
      onProgress,
    }).finally(end);
    if (given.has('json')) printJson(terminal, restored);
    else terminal.print(`Restored: ${censusLine(restored.census)}\n`);
    const remark = KEY_REMARKS[restored.key];
    if (remark !== undefined) terminal.complain(`waypost: ${remark}\n`);
    return EXIT.ok;
  },
);

const KEY_REMARKS: Record<Restored['key'], string | undefined> = {
  fits: undefined,
  'not needed': undefined,
  missing:
    'there is no encryption key yet: put the encryption.key that belongs to this backup into the data folder, or set WAYPOST_ENCRYPTION_KEY',
  other:
    'the encryption key is not the one that the signing keys of this backup are encrypted with: no server starts on it without that',
};
