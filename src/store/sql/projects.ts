/** Who may use the store, and what do they sign with? */
import type { ProjectId } from '../../engine/model.ts';
import type { Project, SealedKeys, TokenScope } from '../../engine/stores.ts';
import type { Queries } from '../driver.ts';
import type { WriteContext } from './log-writer.ts';

export interface EnsureProjectArgs {
  name: string;
  signingKeys: SealedKeys;
  nowMs: number;
}

export async function ensureProject({ tx }: WriteContext, args: EnsureProjectArgs): Promise<Project> {
  const { name, signingKeys, nowMs } = args;
  await tx.run(
    `insert into projects (id, name, signing_current, signing_next, created_at_ms)
     select coalesce(max(id), 0) + 1, ?, ?, ?, ? from projects where true
     on conflict (name) do nothing`,
    [name, signingKeys.current, signingKeys.next, nowMs],
  );
  const [row] = await tx.query<{ id: number }>('select id from projects where name = ?', [name]);
  if (!row) throw new Error(`project ${name} was not saved`);
  return { projectId: row.id, name };
}

export async function listProjects(queries: Queries): Promise<Project[]> {
  const rows = await queries.query<{ id: number; name: string }>('select id, name from projects order by id');
  return rows.map((row) => ({ projectId: row.id, name: row.name }));
}

export interface AddTokenArgs {
  projectId: ProjectId;
  tokenHash: string;
  scope: TokenScope;
  nowMs: number;
}

export async function addToken({ tx }: WriteContext, args: AddTokenArgs): Promise<void> {
  await tx.run(
    'insert into tokens (hash, project_id, scope, created_at_ms) values (?, ?, ?, ?) on conflict (hash) do nothing',
    [args.tokenHash, args.projectId, args.scope, args.nowMs],
  );
}

export async function listTokens(
  queries: Queries,
): Promise<{ projectId: ProjectId; tokenHash: string; scope: TokenScope }[]> {
  const rows = await queries.query<{ hash: string; project_id: number; scope: TokenScope }>(
    'select hash, project_id, scope from tokens order by project_id, hash',
  );
  return rows.map((row) => ({ projectId: row.project_id, tokenHash: row.hash, scope: row.scope }));
}

export async function signingKeys(queries: Queries, { projectId }: { projectId: ProjectId }): Promise<SealedKeys> {
  const [row] = await queries.query<{ signing_current: string; signing_next: string }>(
    'select signing_current, signing_next from projects where id = ?',
    [projectId],
  );
  if (!row) throw new Error(`there is no project ${projectId}`);
  return { current: row.signing_current, next: row.signing_next };
}

export interface ReplaceSigningKeysArgs {
  projectId: ProjectId;
  expected: SealedKeys;
  next: SealedKeys;
}

export async function replaceSigningKeys({ tx }: WriteContext, args: ReplaceSigningKeysArgs): Promise<SealedKeys> {
  const { projectId, expected, next } = args;
  await tx.run(
    `update projects set signing_current = ?, signing_next = ?
     where id = ? and signing_current = ? and signing_next = ?`,
    [next.current, next.next, projectId, expected.current, expected.next],
  );
  return signingKeys(tx, { projectId });
}
