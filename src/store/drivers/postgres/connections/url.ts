/** Parses the URL of a database. */
import type pg from 'pg';
import { BINDING_PARAMETER, bindingOf } from './channel-binding.ts';
import { Encryption, SSL_PARAMETERS } from './encryption.ts';

/** Where a store is: a database, and perhaps a schema in it. */
export interface DatabaseLocation {
  /** Without the schema. */
  url: string;
  /** Absent: session.ts chooses it. */
  schema?: string;
}

/** Parameters that only this program reads. */
const OWN = ['schema', ...SSL_PARAMETERS, BINDING_PARAMETER];
const KNOWN = [...OWN, 'application_name', 'host', 'options', 'password', 'port', 'user'];

/** Names that need no quotes, with room for what the names of prepared statements add. */
const SCHEMA = /^[a-z_][a-z0-9_]{0,39}$/;

/** `?schema=` in the URL names the schema. Throws when that cannot be one, and for any parameter that has no effect. */
export function locationOf(given: string): DatabaseLocation {
  const url = new URL(given);
  for (const name of new Set(url.searchParams.keys())) {
    if (!KNOWN.includes(name))
      throw new Error(`the URL has a parameter that is not known, ${JSON.stringify(name)}${hintFor(name)}`);
    if (url.searchParams.getAll(name).length > 1) throw new Error(`the URL has the parameter "${name}" more than once`);
  }
  const schema = url.searchParams.get('schema');
  if (schema === null) return { url: given };
  if (!SCHEMA.test(schema)) {
    throw new Error(`schema ${JSON.stringify(schema)}: 1 to 40 small letters, digits and "_" can be one`);
  }
  url.searchParams.delete('schema');
  return { url: url.href, schema };
}

function hintFor(name: string): string {
  if (/schema|search_?path/i.test(name)) return ': "schema" names the schema of the tables';
  if (/^(ssl|tls)$/i.test(name)) return ': "sslmode" says how to encrypt';
  return `: these are ${KNOWN.join(', ')}`;
}

/**
 * `config`: for the client library, without what `encryption` adds. Keep-alive notices a server that went away silently. Throws
 * as `placeOf` does, and for what the parameters of encryption cannot mean.
 */
export function clientOptions(
  given: string,
  timeoutMs: number,
): { config: pg.ClientConfig; encryption: Encryption; isBound: boolean } {
  const url = new URL(locationOf(given).url);
  const host = url.searchParams.get('host') ?? decodeURIComponent(url.hostname);
  const encryption = new Encryption(url.searchParams, host.startsWith('/'));
  const binding = bindingOf(url.searchParams);
  for (const name of OWN) url.searchParams.delete(name);
  return {
    config: {
      connectionString: url.href,
      connectionTimeoutMillis: timeoutMs,
      keepAlive: true,
      keepAliveInitialDelayMillis: 10_000,
      fallback_application_name: 'waypost',
      ...(binding !== 'disable' && { enableChannelBinding: true }),
    },
    encryption,
    isBound: binding === 'require',
  };
}
