/** Parses the URL of a database into its location and the options of the client library. */
import type pg from 'pg';
import { BINDING_PARAMETER, bindingOf } from './channel-binding.ts';
import { Encryption, SSL_PARAMETERS } from './encryption.ts';

/** The location of a store: a database, and optionally a schema in it. */
export interface DatabaseLocation {
  /** The URL without the parameter `schema`. */
  url: string;
  /** If absent, session.ts chooses the schema. */
  schema?: string;
}

/** Parameters that only this program reads. */
const OWN_PARAMETERS = ['schema', ...SSL_PARAMETERS, BINDING_PARAMETER];
const KNOWN_PARAMETERS = [...OWN_PARAMETERS, 'application_name', 'host', 'options', 'password', 'port', 'user'];

/** Identifiers that need no quotes, short enough to be part of the names of prepared statements. */
const SCHEMA = /^[a-z_][a-z0-9_]{0,39}$/;

/** `?schema=` in the URL names the schema. Throws for an invalid schema and for an unknown or repeated parameter. */
export function locationOf(storeUrl: string): DatabaseLocation {
  const url = new URL(storeUrl);
  for (const name of new Set(url.searchParams.keys())) {
    if (!KNOWN_PARAMETERS.includes(name))
      throw new Error(`the URL has an unknown parameter ${JSON.stringify(name)}${hintFor(name)}`);
    if (url.searchParams.getAll(name).length > 1) throw new Error(`the URL has the parameter "${name}" more than once`);
  }
  const schema = url.searchParams.get('schema');
  if (schema === null) return { url: storeUrl };
  if (!SCHEMA.test(schema)) {
    throw new Error(`schema ${JSON.stringify(schema)} must be 1 to 40 lowercase letters, digits and "_"`);
  }
  url.searchParams.delete('schema');
  return { url: url.href, schema };
}

function hintFor(name: string): string {
  if (/schema|search_?path/i.test(name)) return ': "schema" names the schema of the tables';
  if (/^(ssl|tls)$/i.test(name)) return ': "sslmode" says how to encrypt';
  return `; known are ${KNOWN_PARAMETERS.join(', ')}`;
}

/**
 * Returns the options of the client library in `config`, except `ssl`, which `encryption` adds. TCP keep-alive detects a
 * server that vanished. Throws like `locationOf`, and for invalid parameters of encryption.
 */
export function clientOptions(
  storeUrl: string,
  timeoutMs: number,
): { config: pg.ClientConfig; encryption: Encryption; isBound: boolean } {
  const url = new URL(locationOf(storeUrl).url);
  const host = url.searchParams.get('host') ?? decodeURIComponent(url.hostname);
  const encryption = new Encryption(url.searchParams, host.startsWith('/'));
  const binding = bindingOf(url.searchParams);
  for (const name of OWN_PARAMETERS) url.searchParams.delete(name);
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
