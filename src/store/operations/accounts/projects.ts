/** Who may use the store, and with which keys does it sign? */
import type { ProjectId } from '../../../engine/model.ts';
import type { AccountsState, Project, SealedKeys, Token, TokenScope } from '../../../engine/stores.ts';
import type { Queries, Transaction } from '../../driver.ts';
import type { WriteContext } from '../logs/log-writer.ts';
import { read, write } from '../operation.ts';

export interface EnsureProjectArgs {
  name: string;
  signingKeys: SealedKeys;
  nowMs: number;
}

const PROJECT_FIELDS = 'id as "projectId", name, created_at_ms as "createdAtMs"';

export const ensureProject = write(
  { changesAccounts: true },
  async ({ tx }: WriteContext, args: EnsureProjectArgs): Promise<Project> => {
    const { name, signingKeys, nowMs } = args;
    const made = await tx.run(
      `insert into projects (id, name, signing_current, signing_next, created_at_ms)
     select coalesce(max(id), 0) + 1, ?, ?, ?, ? from projects where true
     on conflict (name) do nothing`,
      [name, signingKeys.current, signingKeys.next, nowMs],
    );
    if (made > 0) await noteChange(tx);
    const [row] = await tx.query<Project>(`select ${PROJECT_FIELDS} from projects where name = ?`, [name]);
    if (!row) throw new Error(`project ${name} was not saved`);
    return row;
  },
);

export const listProjects = read((queries: Queries): Promise<Project[]> => {
  return queries.query<Project>(`select ${PROJECT_FIELDS} from projects order by id`);
});

export const addToken = write({ changesAccounts: true }, async ({ tx }: WriteContext, token: Token): Promise<void> => {
  const added = await tx.run(
    `insert into tokens (hash, project_id, scope, name, created_at_ms, last_used_at_ms) values (?, ?, ?, ?, ?, ?)
     on conflict (hash) do nothing`,
    [token.tokenHash, token.projectId, token.scope, token.name ?? null, token.createdAtMs, token.lastUsedAtMs ?? null],
  );
  if (added > 0) await noteChange(tx);
});

interface TokenRow {
  hash: string;
  project_id: ProjectId;
  scope: TokenScope;
  name: string | null;
  created_at_ms: number;
  last_used_at_ms: number | null;
}

export const listTokens = read(async (queries: Queries): Promise<Token[]> => {
  const rows = await queries.query<TokenRow>(
    `select hash, project_id, scope, name, created_at_ms, last_used_at_ms from tokens
     order by project_id, created_at_ms, hash`,
  );
  return rows.map((row) => ({
    tokenHash: row.hash,
    projectId: row.project_id,
    scope: row.scope,
    ...(row.name === null ? {} : { name: row.name }),
    createdAtMs: row.created_at_ms,
    ...(row.last_used_at_ms === null ? {} : { lastUsedAtMs: row.last_used_at_ms }),
  }));
});

export const removeToken = write(
  { changesAccounts: true },
  async ({ tx }: WriteContext, { tokenHash }: { tokenHash: string }): Promise<boolean> => {
    const isRemoved = (await tx.run('delete from tokens where hash = ?', [tokenHash])) > 0;
    if (isRemoved) await noteChange(tx);
    return isRemoved;
  },
);

export const noteTokenUse = write(
  async ({ tx }: WriteContext, { tokenHash, nowMs }: { tokenHash: string; nowMs: number }): Promise<void> => {
    await tx.send('update tokens set last_used_at_ms = ? where hash = ?', [nowMs, tokenHash]);
  },
);

export const signingKeys = read(
  async (queries: Queries, { projectId }: { projectId: ProjectId }): Promise<SealedKeys> => {
    const [row] = await queries.query<{ signing_current: string; signing_next: string }>(
      'select signing_current, signing_next from projects where id = ?',
      [projectId],
    );
    if (!row) throw new Error(`there is no project ${projectId}`);
    return { current: row.signing_current, next: row.signing_next };
  },
);

export interface ReplaceSigningKeysArgs {
  projectId: ProjectId;
  expected: SealedKeys;
  next: SealedKeys;
}

export const replaceSigningKeys = write(
  { changesAccounts: true },
  async ({ tx }: WriteContext, args: ReplaceSigningKeysArgs): Promise<SealedKeys> => {
    const { projectId, expected, next } = args;
    const replaced = await tx.run(
      `update projects set signing_current = ?, signing_next = ?
     where id = ? and signing_current = ? and signing_next = ?`,
      [next.current, next.next, projectId, expected.current, expected.next],
    );
    if (replaced > 0) await noteChange(tx);
    return signingKeys(tx, { projectId });
  },
);

/** All from one snapshot. */
export const readAccounts = read(async (queries: Queries): Promise<AccountsState> => {
  const rows = await queries.query<Project & { signing_current: string; signing_next: string }>(
    `select ${PROJECT_FIELDS}, signing_current, signing_next from projects order by id`,
  );
  const projects = rows.map(({ signing_current: current, signing_next: next, ...project }) => ({
    ...project,
    signingKeys: { current, next },
  }));
  return { version: await accountsVersion(queries), projects, tokens: await listTokens(queries, {}) };
});

/** Every change here but the last use of a token raises this number: it tells the other workers to read again. */
export async function accountsVersion(queries: Queries): Promise<number> {
  const [row] = await queries.query<{ next: number }>("select next from numbers where name = 'accounts'");
  return row?.next ?? 0;
}

async function noteChange(tx: Transaction): Promise<void> {
  await tx.send("update numbers set next = next + 1 where name = 'accounts'");
}
