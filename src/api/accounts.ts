/** Who may call, and with which keys a project's deliveries are signed (contract M 2, 10.3). Implemented over the store. */
import type { ProjectId } from '../engine/model.ts';
import type { TokenScope } from '../engine/stores.ts';

export interface Caller {
  projectId: ProjectId;
  scope: TokenScope;
}

export interface SigningKeys {
  current: string;
  next: string;
}

export interface Accounts {
  /** `tokenHash`: SHA-256 of the whole token, base64url. Answers from memory, since it runs on every request. */
  authenticate(tokenHash: string): Caller | undefined;
  /** Of what it answers by, where others change it: whoever was admitted by an older one may not be any more. */
  readonly sharedVersion?: number | undefined;
  /** Reads what others may have changed. */
  refresh?(): Promise<void>;
  /**
   * `undefined`: what is in memory holds. Otherwise, where others change accounts and this worker has not heard of them for too
   * long, it resolves when it does again; rejects with `StoreUnavailable` when they cannot be had.
   */
  catchUp?(): Promise<void> | undefined;
  /**
   * Somebody came with a token that nobody has: reads what other workers may have changed. Asked again within a second,
   * or where no other can have changed anything, there is nothing to read: `undefined`.
   */
  lookAgain?(): Promise<void> | undefined;
  /** The project of that name, which is the `UserID` in its tokens. */
  projectNamed(name: string): ProjectId | undefined;
  signingKeys(projectId: ProjectId): Promise<SigningKeys>;
  /** `current` becomes the former `next`, `next` is new; resolves once that is durable. */
  rotate(projectId: ProjectId): Promise<SigningKeys>;
}
