/** `waypost restore`: restores a store from a backup. */

import type { RestoreResult } from '../../admin/restore.ts';
import { parseConfig } from '../../config/parse.ts';
import { EXIT, printJson, required } from '../command.ts';
import { commandWithSettings } from '../command-with-settings.ts';
import { reportCopy } from '../progress.ts';
import { censusLine } from './census.ts';

export const restore = commandWithSettings(
  'restore',
  {
    about: `Usage: waypost restore --from <file> [--overwrite] [--json] [options]

Restores a file of "waypost backup" into the data folder, or into the database of DATABASE_URL, of either kind. No server
may be running on it. A SQLite store is replaced in one step. Into PostgreSQL, rows are copied; if that is interrupted, run
the same command again to continue. No server starts on the store before the restore is complete.

Messages that were delivered after the backup was made are delivered again.`,
    options: {
      '--from <file>': 'The backup file. It is not changed.',
      '--overwrite': 'Replace a store that has data, and restart an interrupted restore from the beginning.',
      '--json': 'Print JSON.',
    },
    settings: 'store',
    example: 'restore --from /backups/waypost.db',
  },
  async (parsed, terminal) => {
    const overwrite = parsed.has('overwrite');
    const from = required(parsed.value('from'), 'restore: --from <file>');
    const { onProgress, end } = reportCopy(terminal);
    const { restore: restoreStore } = await import('../../admin/restore.ts');
    const restored = await restoreStore(parseConfig(terminal.env, parsed.settings), {
      from,
      overwrite,
      onProgress,
    }).finally(end);
    if (parsed.has('json')) printJson(terminal, restored);
    else terminal.print(`Restored: ${censusLine(restored.census)}\n`);
    const remark = KEY_WARNINGS[restored.key];
    if (remark !== undefined) terminal.printError(`waypost: ${remark}\n`);
    return EXIT.ok;
  },
);

const KEY_WARNINGS: Record<RestoreResult['key'], string | undefined> = {
  fits: undefined,
  'not needed': undefined,
  missing:
    'there is no encryption key yet: copy the encryption.key of this backup into the data folder, or set WAYPOST_ENCRYPTION_KEY',
  other: 'the signing keys of this backup are encrypted with another encryption key: no server starts without that key',
};
