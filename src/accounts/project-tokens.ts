/** Creates and revokes a project's tokens over HTTP, for callers with a full token (docs/decisions/029). */

import type { CreatedToken, ProjectTokens } from '../api/accounts.ts';
import { unauthenticated } from '../api/edge/authentication.ts';
import type { InProjectByToken, Token, TokenScope } from '../engine/accounts/store.ts';
import type { ProjectId } from '../engine/model.ts';
import type { Clock, EventLog } from '../engine/ports.ts';
import { StoreUnavailable } from '../engine/store-errors.ts';
import { ApiError, quotaExceeded } from '../protocol/errors.ts';
import { hashToken, mintRandomToken, tokenIdOf } from '../protocol/token.ts';
import type { Store } from '../store/store.ts';
import type { StoredAccounts } from './accounts.ts';

/**
 * A project with this many tokens gets no new token over HTTP. All workers keep all tokens in memory, and read all tokens
 * again after each change. The operator has no such limit.
 */
const TOKENS_MAX = 100;

/** The cache of accounts. */
type Accounts = Pick<StoredAccounts, 'projectName' | 'refresh' | 'forget' | 'notifyOthers' | 'sharedVersion'>;

export class StoredTokens implements ProjectTokens {
  readonly #projects: Store['projects'];
  readonly #accounts: Accounts;
  readonly #clock: Clock;
  readonly #log: EventLog;
  readonly #randomBytes: (count: number) => Uint8Array;

  constructor(
    { projects }: { projects: Store['projects'] },
    accounts: Accounts,
    clock: Clock,
    log: EventLog,
    randomBytes: (count: number) => Uint8Array,
  ) {
    this.#projects = projects;
    this.#accounts = accounts;
    this.#clock = clock;
    this.#log = log;
    this.#randomBytes = randomBytes;
  }

  list(projectId: ProjectId): Promise<Token[]> {
    return this.#projects.listTokensOf({ projectId });
  }

  async create({
    projectId,
    by,
    scope,
    name,
  }: InProjectByToken & { scope: TokenScope; name?: string }): Promise<CreatedToken> {
    const project = this.#accounts.projectName(projectId);
    const secret = mintRandomToken(project, this.#randomBytes);
    const token = {
      tokenHash: hashToken(secret),
      scope,
      createdAtMs: this.#clock.wallMs(),
      ...(name !== undefined && { name }),
    };
    const made = await this.#projects.makeToken({ projectId, by, token, tokensMax: TOKENS_MAX });
    if (made === 'revoked') throw unauthenticated();
    if (made === 'tooMany') throw quotaExceeded('maxTokens', TOKENS_MAX);
    this.#log.info('token_made', { project, tokenId: tokenIdOf(token.tokenHash), scope, by: tokenIdOf(by) });
    await this.#admit();
    return { token: { ...token, projectId }, secret };
  }

  async revoke({ projectId, by, tokenId }: InProjectByToken & { tokenId: string }): Promise<void> {
    const outcome = await this.#projects.revokeToken({ projectId, by, tokenId });
    switch (outcome) {
      case 'revoked':
        throw unauthenticated();
      case 'missing':
        throw new ApiError('not_found', `token ${tokenId} not found`);
      case 'lastFull':
        throw new ApiError('conflict', `token ${tokenId} is the last full token of its project: make another first`);
      default:
        this.#accounts.forget(outcome.tokenHash);
        this.#log.info('token_revoked', { tokenId, by: tokenIdOf(by) });
    }
    try {
      await this.#accounts.notifyOthers();
    } catch (error) {
      if (!(error instanceof StoreUnavailable)) throw error;
      throw new ApiError(
        'unavailable',
        `token ${tokenId} is revoked, but not all workers have said that they know of it`,
      );
    }
  }

  /**
   * Admits a new token on all workers. Reads the tokens from the store, where the new token may already have been
   * revoked.
   */
  async #admit(): Promise<void> {
    await this.#accounts.refresh();
    try {
      await this.#accounts.notifyOthers();
    } catch (error) {
      // When workers share the database, this error is harmless: each worker refreshes its accounts on an unknown token.
      if (this.#accounts.sharedVersion === undefined) throw error;
    }
  }
}
