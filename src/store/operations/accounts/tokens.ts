/** Adds, lists and removes the tokens of projects. */
import type { InProjectByToken, Token, TokenScope } from '../../../engine/accounts/store.ts';
import type { ProjectId } from '../../../engine/model.ts';
import { tokenIdOf } from '../../../protocol/token.ts';
import type { Queries, Transaction } from '../../driver.ts';
import type { WriteContext } from '../logs/log-writer.ts';
import { directoryRead, read, write } from '../operation.ts';
import { noteChange } from './version.ts';

interface TokenRow {
  hash: string;
  project_id: ProjectId;
  scope: TokenScope;
  name: string | null;
  created_at_ms: number;
  last_used_at_ms: number | null;
}

const FIELDS = 'hash, project_id, scope, name, created_at_ms, last_used_at_ms';

/** Does nothing if the token exists. */
export const addToken = write({ changesAccounts: true }, async ({ tx }: WriteContext, token: Token): Promise<void> => {
  const added = await tx.run(
    `insert into tokens (${FIELDS}) values (?, ?, ?, ?, ?, ?)
     on conflict (hash) do nothing`,
    [token.tokenHash, token.projectId, token.scope, token.name ?? null, token.createdAtMs, token.lastUsedAtMs ?? null],
  );
  if (added > 0) await noteChange(tx);
});

/** All tokens, by project, then by creation. */
export const listTokens = read(async (queries: Queries): Promise<Token[]> => {
  const rows = await queries.query<TokenRow>(`select ${FIELDS} from tokens order by project_id, created_at_ms, hash`);
  return rows.map(decode);
});

/** The tokens of one project, by creation. */
export const listTokensOf = directoryRead(
  async (queries: Queries, { projectId }: { projectId: ProjectId }): Promise<Token[]> => {
    const rows = await queries.query<TokenRow>(
      `select ${FIELDS} from tokens where project_id = ? order by created_at_ms, hash`,
      [projectId],
    );
    return rows.map(decode);
  },
);

/** Returns false if there is no such token. */
export const removeToken = write(
  { changesAccounts: true },
  async ({ tx }: WriteContext, { tokenHash }: { tokenHash: string }): Promise<boolean> => {
    return remove(tx, tokenHash);
  },
);

type MakeTokenArgs = InProjectByToken & { token: Omit<Token, 'projectId'>; tokensMax: number };

/**
 * Adds a token on behalf of the token `by`. Returns `revoked` if `by` no longer exists, and `tooMany` if the project
 * already has `tokensMax` tokens.
 */
export const makeToken = write(
  { changesAccounts: true },
  async (context: WriteContext, { projectId, by, token, tokensMax }: MakeTokenArgs) => {
    const tokens = await lockTokens(context.tx, projectId);
    if (!tokens.some((own) => own.hash === by && own.scope === 'full')) return 'revoked';
    if (tokens.length >= tokensMax) return 'tooMany';
    await addToken(context, { ...token, projectId });
    return 'made';
  },
);

/**
 * Removes a token by its id, and returns its hash. Returns `revoked` if the token `by` no longer exists, and `lastFull`
 * if the project would have no full token left, which happens to the last of several concurrent removals.
 */
export const revokeToken = write(
  { changesAccounts: true },
  async ({ tx }: WriteContext, { projectId, by, tokenId }: InProjectByToken & { tokenId: string }) => {
    const tokens = await lockTokens(tx, projectId);
    const full = tokens.filter(({ scope }) => scope === 'full');
    if (!full.some(({ hash }) => hash === by)) return 'revoked';
    const token = tokens.find(({ hash }) => tokenIdOf(hash) === tokenId);
    if (token === undefined) return 'missing';
    if (token.scope === 'full' && full.length === 1) return 'lastFull';
    await remove(tx, token.hash);
    return { tokenHash: token.hash };
  },
);

export const noteTokenUse = write(
  async ({ tx }: WriteContext, { tokenHash, nowMs }: { tokenHash: string; nowMs: number }): Promise<void> => {
    await tx.send('update tokens set last_used_at_ms = ? where hash = ?', [nowMs, tokenHash]);
  },
);

/** Reads and locks the project's tokens: other removals, including those of the operator, wait for this transaction. */
function lockTokens(tx: Transaction, projectId: ProjectId): Promise<Pick<TokenRow, 'hash' | 'scope'>[]> {
  return tx.query('select hash, scope from tokens where project_id = ? order by hash for update', [projectId]);
}

async function remove(tx: Transaction, tokenHash: string): Promise<boolean> {
  const isRemoved = (await tx.run('delete from tokens where hash = ?', [tokenHash])) > 0;
  if (isRemoved) await noteChange(tx);
  return isRemoved;
}

function decode(row: TokenRow): Token {
  return {
    tokenHash: row.hash,
    projectId: row.project_id,
    scope: row.scope,
    ...(row.name === null ? {} : { name: row.name }),
    createdAtMs: row.created_at_ms,
    ...(row.last_used_at_ms === null ? {} : { lastUsedAtMs: row.last_used_at_ms }),
  };
}
