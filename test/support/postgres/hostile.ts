/** Changes the defaults of a database so that statements and values have another meaning. */
import pg from 'pg';

/** Values that differ from PostgreSQL's defaults, and break programs that rely on them. */
export const HOSTILE: Readonly<Record<string, string>> = {
  bytea_output: "'escape'",
  DateStyle: "'SQL, DMY'",
  IntervalStyle: "'iso_8601'",
  TimeZone: "'Asia/Kathmandu'",
  extra_float_digits: '-15',
  standard_conforming_strings: 'off',
  client_encoding: "'LATIN1'",
  client_min_messages: "'error'",
  quote_all_identifiers: 'on',
  search_path: 'decoys, public',
  default_transaction_isolation: "'serializable'",
  default_transaction_deferrable: 'on',
  synchronous_commit: 'off',
  // These limits also apply to the statement that replaces them, which takes less time even on a busy machine.
  statement_timeout: "'3s'",
  lock_timeout: "'1ms'",
  idle_in_transaction_session_timeout: "'3s'",
  transaction_timeout: "'3s'",
};

/** Sets the defaults `HOSTILE` for new sessions of the database. The first schema in the search path has no store. */
export async function makeHostile(url: string): Promise<string> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    await client.query('create schema decoys');
    const name = `"${new URL(url).pathname.slice(1)}"`;
    for (const [setting, value] of Object.entries(HOSTILE))
      await client.query(`alter database ${name} set ${setting} = ${value}`);
    return url;
  } finally {
    await client.end();
  }
}
