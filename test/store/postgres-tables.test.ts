/** The schema that the migrations create on PostgreSQL, read from its catalog, without the tables of log days. */
import pg from 'pg';
import { expect, it } from 'vitest';
import { PostgresDriver } from '../../src/store/drivers/postgres/driver.ts';
import { migrate } from '../../src/store/migrations/index.ts';
import { systemClock } from '../../src/system/system.ts';
import { freshDatabase } from '../support/postgres/shared.ts';

const TABLES = `select c.oid, c.relname as name, c.reloptions as settings, t.reloptions as toast_settings,
    pg_get_partkeydef(c.oid) as partitioned, pg_get_expr(c.relpartbound, c.oid) as bound,
    (select p.inhparent::regclass::text from pg_inherits p where p.inhrelid = c.oid) as parent
  from pg_class c left join pg_class t on t.oid = c.reltoastrelid
  where c.relnamespace = current_schema()::regnamespace and c.relkind in ('r', 'p') order by c.relname`;

const COLUMNS = `select a.attname as name, format_type(a.atttypid, a.atttypmod) as type, a.attnotnull as required,
    pg_get_expr(d.adbin, d.adrelid) as fallback,
    (select l.collname from pg_collation l where l.oid = a.attcollation and l.collname <> 'default') as collation
  from pg_attribute a left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
  where a.attrelid = $1 and a.attnum > 0 and not a.attisdropped order by a.attnum`;

const INDEXES = `select pg_get_indexdef(i.indexrelid) as text, i.indisprimary as is_primary
  from pg_index i join pg_class c on c.oid = i.indexrelid where i.indrelid = $1 order by not i.indisprimary, c.relname`;

interface Table {
  oid: number;
  name: string;
  settings: string[] | null;
  toast_settings: string[] | null;
  partitioned: string | null;
  bound: string | null;
  parent: string | null;
}

interface Column {
  name: string;
  type: string;
  required: boolean;
  fallback: string | null;
  collation: string | null;
}

async function dump(client: pg.Client, table: Table): Promise<string> {
  const { rows: columns } = await client.query<Column>(COLUMNS, [table.oid]);
  const { rows: indexes } = await client.query<{ text: string; is_primary: boolean }>(INDEXES, [table.oid]);
  const lines = columns.map(({ name, type, required, fallback, collation }) =>
    [
      `  ${name} ${type}`,
      collation === null ? '' : ` collate "${collation}"`,
      required ? ' not null' : '',
      fallback === null ? '' : ` default ${fallback}`,
    ].join(''),
  );
  const { settings, toast_settings: toast, partitioned, parent, bound } = table;
  const all = [...(settings ?? []), ...(toast ?? []).map((setting) => `toast.${setting}`)];
  return [
    parent === null ? '' : `-- partition of ${parent}: ${bound?.toLowerCase()}\n`,
    `create table ${table.name} (\n${lines.join(',\n')}\n)`,
    partitioned === null ? '' : ` partition by ${partitioned.toLowerCase()}`,
    all.length === 0 ? '' : ` with (\n  ${all.join(',\n  ')}\n)`,
    ';\n',
    ...indexes.map(({ text, is_primary }) => `${text};${is_primary ? ' -- primary key' : ''}\n`),
  ].join('');
}

it.each([18, 14] as const)('is the one of schema.postgres.sql on PostgreSQL %i', async (version) => {
  const url = await freshDatabase(version);
  const driver = openDriver(url);
  await migrate(driver);
  await driver.close();
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const { rows: tables } = await client.query<Table>(TABLES);
  const schema: string[] = [];
  for (const table of tables) schema.push(await dump(client, table));
  await client.end();
  await expect(schema.join('\n').replaceAll('public.', '')).toMatchFileSnapshot('./schema.postgres.sql');
});

function openDriver(url: string): PostgresDriver {
  return new PostgresDriver({ url, connectionsMax: 1, timeoutMs: 10_000, prepares: true, clock: systemClock });
}
