/** Chooses the encryption and the trusted certificates of a connection by `sslmode` of the URL, as in libpq. */
import { readFileSync } from 'node:fs';
import pg from 'pg';
import { StoreUnavailable } from '../../../../engine/store-errors.ts';

const MODES = ['disable', 'allow', 'prefer', 'require', 'verify-ca', 'verify-full'] as const;
type Mode = (typeof MODES)[number];

type ConnectionOptions = Exclude<pg.ClientConfig['ssl'], boolean | undefined>;
/** The option `ssl` of the client library. False: not encrypted. */
type Ssl = false | ConnectionOptions;

/** The URL parameters that this file reads. */
export const SSL_PARAMETERS = ['sslmode', 'sslrootcert', 'sslcert', 'sslkey'];

/** As in libpq: trusts the system's certificate authorities, which means Node's own list here. */
const SYSTEM = 'system';

/** A server may accept encrypted connections, plain connections or both. The kind that succeeded last is tried first. */
export class Encryption {
  readonly #kinds: readonly Ssl[];
  #current = 0;

  /** Throws an error that names the invalid parameter. `isLocal` means a Unix socket, which is never encrypted. */
  constructor(parameters: URLSearchParams, isLocal: boolean) {
    const rootcert = parameters.get('sslrootcert') ?? undefined;
    const defaultMode = rootcert === SYSTEM ? 'verify-full' : 'prefer';
    const mode = modeNamed(parameters.get('sslmode') ?? defaultMode);
    this.#kinds = isLocal ? [false] : kindsOf(mode, parameters, rootcert);
  }

  /** The option for the next connection. */
  get ssl(): Ssl {
    return this.#kinds[this.#current] ?? false;
  }

  /** If a connection failed because of its kind, selects the other kind for the next connection. */
  recordFailure(ssl: Ssl, error: unknown): void {
    // Many connections may fail at once: only the first failure changes the kind.
    if (isKindRefused(error) && this.ssl === ssl) this.#current = (this.#current + 1) % this.#kinds.length;
  }

  /**
   * Tries each kind of connection until one is accepted. If the certificate or the kind is refused, throws
   * `StoreUnavailable` with the parameter that would help.
   */
  async connect<T>(connect: (ssl: Ssl) => Promise<T>): Promise<T> {
    let refused: unknown;
    for (let triesLeft = this.#kinds.length - 1; ; triesLeft -= 1) {
      const { ssl } = this;
      try {
        return await connect(ssl);
      } catch (error) {
        this.recordFailure(ssl, error);
        if (isTlsError(error)) refused ??= error;
        if (triesLeft === 0 || !isKindRefused(error)) throw withRemedy(refused ?? error);
      }
    }
  }
}

function modeNamed(name: string): Mode {
  const mode = MODES.find((each) => each === name);
  if (mode !== undefined) return mode;
  const remedy = name === 'no-verify' ? ': "require" encrypts without verification' : '';
  throw new Error(`sslmode must be one of ${MODES.join(', ')}, not ${JSON.stringify(name)}${remedy}`);
}

function kindsOf(mode: Mode, parameters: URLSearchParams, rootcert: string | undefined): readonly Ssl[] {
  if (mode === 'disable') return [false];
  const ssl = sslOf(mode, parameters, rootcert);
  if (mode === 'allow') return [false, ssl];
  return mode === 'prefer' ? [ssl, false] : [ssl];
}

function sslOf(mode: Mode, parameters: URLSearchParams, rootcert: string | undefined): ConnectionOptions {
  if (rootcert === SYSTEM && mode !== 'verify-full')
    throw new Error(`sslrootcert=system needs sslmode=verify-full, not ${mode}: it trusts certificates of any host`);
  if (rootcert === undefined && mode === 'verify-ca')
    throw new Error('sslmode=verify-ca needs sslrootcert, a file with the authority; verify-full needs none');
  const [cert, key] = [read(parameters, 'sslcert'), read(parameters, 'sslkey')];
  if ((cert === undefined) !== (key === undefined)) throw new Error('sslcert and sslkey must be given together');
  const ca = rootcert === SYSTEM ? undefined : read(parameters, 'sslrootcert');
  return {
    ...(ca !== undefined && { ca }),
    ...(cert !== undefined && { cert, key }),
    rejectUnauthorized: ca !== undefined || mode === 'verify-full',
    ...(mode !== 'verify-full' && { checkServerIdentity: () => undefined }),
  };
}

function read(parameters: URLSearchParams, name: string): Buffer | undefined {
  const path = parameters.get(name);
  if (path === null) return undefined;
  try {
    return readFileSync(path);
  } catch (error) {
    throw new Error(`${name} cannot be read: ${messageOf(error)}`, { cause: error });
  }
}

const WRONG_NAME = 'ERR_TLS_CERT_ALTNAME_INVALID';
const UNTRUSTED = new Set([
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'CERT_SIGNATURE_FAILURE',
]);
const TLS_CODE = /^(ERR_TLS_|ERR_SSL_|EPROTO$|CERT_)/;

/** Whether the server refused the kind of the connection, but may accept the other kind. */
function isKindRefused(error: unknown): boolean {
  if (error instanceof pg.DatabaseError) return error.code === '28000'; // pg_hba.conf has no line for this kind
  return isTlsError(error) || isUnsupported(error);
}

function isTlsError(error: unknown): boolean {
  const code = codeOf(error);
  return UNTRUSTED.has(code) || TLS_CODE.test(code);
}

/** The client library's own errors have no codes. */
function isUnsupported(error: unknown): boolean {
  return /SSL connection/.test(messageOf(error));
}

function withRemedy(error: unknown): unknown {
  const remedy = remedyFor(error);
  if (remedy === undefined) return error;
  return new StoreUnavailable(`the database cannot be reached as sslmode demands: ${remedy}`, {
    cause: error,
    detail: messageOf(error),
  });
}

function remedyFor(error: unknown): string | undefined {
  const code = codeOf(error);
  if (UNTRUSTED.has(code))
    return 'sslrootcert must name a file with the authority that signed its certificate; sslmode=require encrypts without verification';
  if (code === WRONG_NAME)
    return 'the host of the URL must be one that its certificate names; sslmode=verify-ca, with sslrootcert, verifies the authority alone';
  if (/does not support SSL/.test(messageOf(error)))
    return 'it does not support encryption; sslmode=disable connects without';
  return isTlsError(error) ? 'the encryption could not be agreed on; sslcert and sslkey identify a client' : undefined;
}

function codeOf(error: unknown): string {
  const { code } = (error ?? {}) as { code?: unknown };
  return typeof code === 'string' ? code : '';
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
