/** How does a test get a database whose defaults change how statements are understood, and values written and read? */
import pg from 'pg';

/** For each, a value that differs from PostgreSQL's own, and breaks a program that relies on that. */
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
  // The statement that replaces these is under them itself: it must not take as long on a busy machine.
  statement_timeout: "'3s'",
  lock_timeout: "'1ms'",
  idle_in_transaction_session_timeout: "'3s'",
  transaction_timeout: "'3s'",
};

/** From now on new sessions of the database begin with these, and look for tables in a schema where a store there is not. */
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
