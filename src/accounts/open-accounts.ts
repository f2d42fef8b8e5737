/**
 * Opens the accounts of this server: the published development credentials, or the credentials that `waypost init`
 * created.
 */

import type { SigningKeys } from '../api/accounts.ts';
import { DEVELOPMENT_ACCOUNTS, isDevelopmentProject, isDevelopmentToken } from '../config/development.ts';
import { wrongKeyMessage } from '../config/encryption-key.ts';
import { SealBroken } from '../config/sealing.ts';
import type { Clock, EventLog } from '../engine/ports.ts';
import { hashToken } from '../protocol/token.ts';
import type { Store } from '../store/store.ts';
import { CannotStart } from '../system/cannot-start.ts';
import { checkSealer, type Sealer, StoredAccounts, sealKeys } from './accounts.ts';

/** `development`: the published credentials, never saved. `own`: the credentials that `waypost init` has saved. */
export type Credentials = 'development' | 'own';

export interface DevelopmentAccess {
  token: string;
  /** The current keys, which are the published keys until the first rotation. */
  signingKeys: SigningKeys;
}

/** Throws `CannotStart` when the store does not fit the requested credentials. */
export async function checkTokens(
  store: { projects: Store['projects'] },
  credentials: Credentials,
  log: EventLog,
): Promise<void> {
  const [tokens, projects] = await Promise.all([store.projects.listTokens(), store.projects.listProjects()]);
  switch (credentials) {
    case 'development':
      if (tokens.length === 0) return;
      throw new CannotStart('this data folder has tokens of its own: use "waypost serve", or another --data-dir');
    case 'own':
      // A store without a project, or with only the development projects of `waypost dev`, has no token of the operator.
      if (projects.every(({ name }) => isDevelopmentProject(name))) {
        throw new CannotStart('there is no token yet: run "waypost init" first');
      }
      // Without a token, all tokens were revoked. The server starts nevertheless, to deliver the accepted messages.
      if (tokens.length === 0) log.warn('no_tokens', { reason: 'nobody can call; "waypost tokens create" makes one' });
      if (!tokens.some(({ tokenHash }) => isDevelopmentToken(tokenHash))) return;
      throw new CannotStart('the database holds a published development token: everybody knows it');
  }
}

interface OpenAccountsOptions {
  credentials: Credentials;
  clock: Clock;
  isShared: boolean;
  log: EventLog;
  /** The folder with the encryption key. */
  dataDir: string;
}

/** Throws `CannotStart` when the encryption key is not the key of this store. */
export function openAccounts(
  store: { projects: Store['projects'] },
  sealer: Sealer,
  { credentials, clock, isShared, log, dataDir }: OpenAccountsOptions,
): Promise<StoredAccounts> {
  return explainWrongKey(dataDir, () =>
    credentials === 'own'
      ? StoredAccounts.open(store, sealer, clock, { isShared, log })
      : openDevelopmentAccounts(store, sealer, clock),
  );
}

/** Call this before the server seals new keys. Throws `CannotStart` when the encryption key is not this store's key. */
export function checkKey(store: { projects: Store['projects'] }, sealer: Sealer, dataDir: string): Promise<void> {
  return explainWrongKey(dataDir, () => checkSealer(store, sealer));
}

/** Throws `CannotStart` where `work` throws `SealBroken`. */
export async function explainWrongKey<T>(dataDir: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof SealBroken) throw new CannotStart(wrongKeyMessage(error, dataDir), { cause: error });
    throw error;
  }
}

/**
 * Keeps the published tokens only in memory: a production server on the data folder of a development server must not
 * admit the published tokens.
 */
async function openDevelopmentAccounts(
  store: { projects: Store['projects'] },
  sealer: Sealer,
  clock: Clock,
): Promise<StoredAccounts> {
  const admissions: { tokenHash: string; projectId: number }[] = [];
  for (const { name, token, signingKeys } of DEVELOPMENT_ACCOUNTS) {
    const { projectId } = await store.projects.ensureProject({
      name,
      signingKeys: sealKeys(signingKeys, sealer),
      nowMs: clock.wallMs(),
    });
    admissions.push({ tokenHash: hashToken(token), projectId });
  }
  const accounts = await StoredAccounts.open(store, sealer, clock);
  for (const { tokenHash, projectId } of admissions) accounts.admit(tokenHash, projectId, 'full');
  return accounts;
}

/** The credentials of the first development account. */
export function developmentAccess(accounts: StoredAccounts): DevelopmentAccess {
  const [{ token }] = DEVELOPMENT_ACCOUNTS;
  const caller = accounts.authenticate(hashToken(token));
  if (caller === undefined) throw new Error('the first development account has no access');
  return { token, signingKeys: accounts.signingKeysSync(caller.projectId) };
}
