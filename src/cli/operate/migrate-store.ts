/** `waypost migrate-store`: copies a stopped store into another database. */
import type { moveStore } from '../../admin/move-store.ts';
import { columns } from '../columns.ts';
import { EXIT, printJson, required } from '../command.ts';
import { configured } from '../configured.ts';
import { reportCopy } from '../progress.ts';

export const migrateStore = configured(
  'migrate-store',
  {
    about: `Usage: waypost migrate-store --from <url> --to <url> [--overwrite] [--json]

Copies everything, in pieces, and then reads both sides and compares them. When it is cut short, the same command goes on
where it stopped; until it is complete, no server starts on the target. The source is left as it was, with the schema of this
version: do not start a server on it again, or what waits is delivered twice.

The encryption key does not lie in the database: the servers on the target need that of the source, which is
WAYPOST_ENCRYPTION_KEY or encryption.key in its data folder.

Passwords can be left out of the URLs: PGPASSWORD and .pgpass are read.`,
    options: {
      '--from <url>': 'sqlite:<path> or postgres://<user>@<host>/<database>. No server may run on it.',
      '--to <url>': 'The same. Empty, or the target of a move that was cut short.',
      '--overwrite': 'Replace what the target has, and begin anew what was cut short.',
      '--json': 'Print JSON.',
    },
    example: 'migrate-store --from sqlite:.waypost/waypost.db --to postgres://waypost@localhost/waypost',
  },
  async (given, terminal) => {
    const { onProgress, end } = reportCopy(terminal);
    const { moveStore } = await import('../../admin/move-store.ts');
    const tables = await moveStore({
      from: required(given.value('from'), 'migrate-store: --from <url>'),
      to: required(given.value('to'), 'migrate-store: --to <url>'),
      overwrite: given.has('overwrite'),
      onProgress,
    }).finally(end);
    if (given.has('json')) printJson(terminal, { tables });
    else terminal.print(report(tables));
    return EXIT.ok;
  },
);

function report(tables: Awaited<ReturnType<typeof moveStore>>): string {
  const rows = tables.map(({ table, rows: count, checksum }) => [table, String(count), checksum]);
  return `${columns([['TABLE', 'ROWS', 'CHECKSUM ON BOTH SIDES'], ...rows])}
All of it is there. The servers on the target need the encryption key of the source: WAYPOST_ENCRYPTION_KEY, or
encryption.key in its data folder. Start none on the source again.
`;
}
