/** Creates and lists projects, and replaces their signing keys. */

import { cellForNewProject, listCells } from '../../../cells/store/directory.ts';
import type { AccountsState, Project, SealedKeys } from '../../../engine/accounts/store.ts';
import type { CellId, ProjectId } from '../../../engine/model.ts';
import type { Queries } from '../../driver.ts';
import type { WriteContext } from '../logs/log-writer.ts';
import { directoryRead, read, write } from '../operation.ts';
import { listTokens } from './tokens.ts';
import { accountsVersion, noteChange } from './version.ts';

export interface EnsureProjectArgs {
  name: string;
  signingKeys: SealedKeys;
  nowMs: number;
  cellId?: CellId;
}

const PROJECT_FIELDS = 'id as "projectId", name, created_at_ms as "createdAtMs"';

/**
 * Finds the project by name, or creates it with `signingKeys`, which are sealed. A new project lives in the cell
 * `cellId`; default: the cell with the fewest projects.
 */
export const ensureProject = write(
  { changesAccounts: true },
  async ({ tx }: WriteContext, args: EnsureProjectArgs): Promise<Project> => {
    const { name, signingKeys, nowMs } = args;
    const { cellId, placement } = await cellForNewProject(tx, args.cellId);
    const made = await tx.run(
      `insert into projects (id, name, signing_current, signing_next, created_at_ms, cell, placement)
     select coalesce(max(id), 0) + 1, ?, ?, ?, ?, ?, ? from projects where true
     on conflict (name) do nothing`,
      [name, signingKeys.current, signingKeys.next, nowMs, cellId, placement],
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

export const signingKeys = directoryRead(
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

/** Replaces the signing keys if the stored keys equal `expected`. Returns the keys that are stored afterwards. */
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

/** All projects, tokens and cells, and the version of the accounts, from one snapshot. */
export const readAccounts = read(async (queries: Queries): Promise<AccountsState> => {
  const rows = await queries.query<Project & { signing_current: string; signing_next: string; cellId: CellId }>(
    `select ${PROJECT_FIELDS}, signing_current, signing_next, cell as "cellId" from projects order by id`,
  );
  const projects = rows.map(({ signing_current: current, signing_next: next, ...project }) => ({
    ...project,
    signingKeys: { current, next },
  }));
  const [version, tokens, cells] = await Promise.all([
    accountsVersion(queries),
    listTokens(queries, {}),
    listCells(queries, {}),
  ]);
  return { version, projects, tokens, cells };
});
