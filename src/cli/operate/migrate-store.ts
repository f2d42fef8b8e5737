/** `waypost migrate-store`: copies a stopped store into another database. */
import type { moveStore } from '../../admin/move-store.ts';
import { columns } from '../columns.ts';
import { EXIT, printJson, required } from '../command.ts';
import { commandWithSettings } from '../command-with-settings.ts';
import { reportCopy } from '../progress.ts';

export const migrateStore = commandWithSettings(
  'migrate-store',
  {
    about: `Usage: waypost migrate-store --from <url> --to <url> [--overwrite] [--json]

Copies all rows in chunks, then reads both databases and compares them. If it is interrupted, run the same command again:
it continues where it stopped. Until it is complete, no server starts on the target. The source keeps its data, migrated to
the schema of this version: do not start a server on it again, or pending messages are delivered twice.

The encryption key is not stored in the database: the servers on the target need the key of the source, which is
WAYPOST_ENCRYPTION_KEY or encryption.key in its data folder.

Passwords can be omitted from the URLs: PGPASSWORD and .pgpass are read.`,
    options: {
      '--from <url>': 'sqlite:<path> or postgres://<user>@<host>/<database>. No server may run on it.',
      '--to <url>': 'The same. Empty, or the target of an interrupted copy.',
      '--overwrite': 'Replace the data of the target, and restart an interrupted copy from the beginning.',
      '--json': 'Print JSON.',
    },
    example: 'migrate-store --from sqlite:.waypost/waypost.db --to postgres://waypost@localhost/waypost',
  },
  async (parsed, terminal) => {
    const { onProgress, end } = reportCopy(terminal);
    const { moveStore } = await import('../../admin/move-store.ts');
    const tables = await moveStore({
      from: required(parsed.value('from'), 'migrate-store: --from <url>'),
      to: required(parsed.value('to'), 'migrate-store: --to <url>'),
      overwrite: parsed.has('overwrite'),
      onProgress,
    }).finally(end);
    if (parsed.has('json')) printJson(terminal, { tables });
    else terminal.print(report(tables));
    return EXIT.ok;
  },
);

function report(tables: Awaited<ReturnType<typeof moveStore>>): string {
  const rows = tables.map(({ table, rows: count, checksum }) => [table, String(count), checksum]);
  return `${columns([['TABLE', 'ROWS', 'CHECKSUM ON BOTH SIDES'], ...rows])}
The copy is complete. The servers on the target need the encryption key of the source: WAYPOST_ENCRYPTION_KEY, or
encryption.key in its data folder. Do not start a server on the source again.
`;
}
