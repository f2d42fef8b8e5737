/**
 * The callers that are admitted, and the keys that a project's deliveries are signed with (contract M 2, 10.3).
 * Implemented over the store.
 */
import type { Token, TokenScope } from '../engine/accounts/store.ts';
import type { ProjectId } from '../engine/model.ts';

export interface Caller {
  projectId: ProjectId;
  scope: TokenScope;
  /** What its owner calls the token. */
  tokenName?: string;
}

export interface SigningKeys {
  current: string;
  next: string;
}

/** The tokens of a project, for its own full tokens (docs/decisions/029). `by`: the hash of the caller's token. */
export interface ProjectTokens {
  list(projectId: ProjectId): Promise<Token[]>;
  /** `secret`: the token itself, which is kept nowhere. Throws `ApiError` 401, 412. */
  create(args: { projectId: ProjectId; by: string; scope: TokenScope; name?: string }): Promise<CreatedToken>;
  /** Resolves when the token lets nobody in any more, on any worker. Throws `ApiError` 401, 404, 409, 503. */
  revoke(args: { projectId: ProjectId; by: string; tokenId: string }): Promise<void>;
}

export interface CreatedToken {
  token: Token;
  secret: string;
}

export interface Accounts {
  /** `tokenHash`: SHA-256 of the whole token, base64url. Answers from memory, since it runs on every request. */
  authenticate(tokenHash: string): Caller | undefined;
  /**
   * Version of the accounts in memory, where other workers can change them too. A caller that an older version admitted
   * may have lost its token since.
   */
  readonly sharedVersion?: number | undefined;
  /** Reads the accounts anew, since other workers may have changed them. */
  refresh?(): Promise<void>;
  /**
   * `undefined`: the accounts in memory are current, or the project of a known token is served although the
   * directory is unavailable. Otherwise this worker could not check for changes for too long, and the promise resolves when
   * the accounts are current again. It rejects with `StoreUnavailable` when they cannot be read.
   */
  catchUp?(projectId?: ProjectId): Promise<void> | undefined;
  /**
   * Called for a token that is not known: reads what other workers may have changed. `undefined` when there is nothing
   * to read: accounts were read for this within the last second, or no other worker can change them.
   */
  refreshForUnknownToken?(): Promise<void> | undefined;
  /** The project with that name. The name is the `UserID` in the project's tokens. */
  projectByName(name: string): ProjectId | undefined;
  /** The name of a project that has a token. */
  projectName(projectId: ProjectId): string;
  signingKeys(projectId: ProjectId): Promise<SigningKeys>;
  /** The current key and the next one, as this worker knows them; none for a project that does not exist. */
  cachedSigningKeys(projectId: ProjectId): readonly string[];
  /** `current` becomes the former `next`, `next` is new; resolves once that is durable. */
  rotate(projectId: ProjectId): Promise<SigningKeys>;
}
