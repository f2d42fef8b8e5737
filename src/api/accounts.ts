/**
 * The interface to the accounts of projects, which the server implements over the store: tokens, which authenticate
 * callers, and keys, which sign deliveries (contract M 2, 10.3).
 */
import type { Token, TokenScope } from '../engine/accounts/store.ts';
import type { ProjectId } from '../engine/model.ts';

export interface Caller {
  projectId: ProjectId;
  scope: TokenScope;
  /** The name that the owner gave the token. */
  tokenName?: string;
}

export interface SigningKeys {
  current: string;
  next: string;
}

/** Lets a full token manage the tokens of its project (docs/decisions/029). `by` is the hash of that token. */
export interface ProjectTokens {
  list(projectId: ProjectId): Promise<Token[]>;
  /** `secret`: the token itself, which is not stored. Throws `ApiError` 401, 412. */
  create(args: { projectId: ProjectId; by: string; scope: TokenScope; name?: string }): Promise<CreatedToken>;
  /** Resolves when every worker rejects the token. Throws `ApiError` 401, 404, 409, 503. */
  revoke(args: { projectId: ProjectId; by: string; tokenId: string }): Promise<void>;
}

export interface CreatedToken {
  token: Token;
  secret: string;
}

export interface Accounts {
  /** `tokenHash`: SHA-256 of the whole token, base64url. Reads only memory, since every request is authenticated. */
  authenticate(tokenHash: string): Caller | undefined;
  /**
   * The version of the accounts in memory; `undefined` if no other worker can change accounts. A token that was valid in
   * an older version may have been revoked.
   */
  readonly sharedVersion?: number | undefined;
  /** Reads the accounts again, since other workers may have changed them. */
  refresh?(): Promise<void>;
  /**
   * Returns `undefined` if the accounts in memory are current. Otherwise this worker has not checked for changes for too
   * long: the promise resolves when the accounts are current again, and rejects with `StoreUnavailable` if they cannot
   * be read. Always returns `undefined` for a `projectId` in another cell than the first: such a project works without
   * the directory, so outdated accounts are sufficient.
   */
  catchUp?(projectId?: ProjectId): Promise<void> | undefined;
  /**
   * Called for an unknown token: reads the changes of other workers. Returns `undefined` without reading if accounts
   * were read for an unknown token within the last second, or if no other worker can change accounts.
   */
  refreshForUnknownToken?(): Promise<void> | undefined;
  /** The project with this name. The tokens of the project contain the name as `UserID`. */
  projectByName(name: string): ProjectId | undefined;
  /** The name of a project that has a token. */
  projectName(projectId: ProjectId): string;
  signingKeys(projectId: ProjectId): Promise<SigningKeys>;
  /** The current and the next key from this worker's memory; empty for a project that does not exist. */
  cachedSigningKeys(projectId: ProjectId): readonly string[];
  /** Makes `next` the current key, and creates a new `next`. Resolves once both are durable. */
  rotate(projectId: ProjectId): Promise<SigningKeys>;
}
