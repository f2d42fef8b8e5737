/** Runs the operator's commands on an open store. */

import { checkSealer, mintSigningKeys, type Sealer, sealKeys, unsealKeys } from '../../accounts/accounts.ts';
import { isDevelopmentProject } from '../../config/development.ts';
import type { Project, SealedKeys, Token } from '../../engine/accounts/store.ts';
import type { CellId } from '../../engine/model.ts';
import type { Clock, Randomness } from '../../engine/ports.ts';
import { isName } from '../../protocol/names.ts';
import { hashToken, isTokenName, mintRandomToken, TOKEN_NAME_RULE, tokenIdOf } from '../../protocol/token.ts';
import type { Store } from '../../store/store.ts';
import {
  type Administration,
  CommandRefused,
  type CreatedProject,
  type CreatedToken,
  type CreateTokenRequest,
  type ProjectEntry,
  type TokenEntry,
} from './commands.ts';

/** The accounts in memory of a running server, which must be updated before a command is reported as done. */
export interface AccountsInMemory {
  addProject(project: Pick<Project, 'projectId' | 'name'>, sealed: SealedKeys): void;
  admitStored(token: Token): void;
  forget(tokenHash: string): void;
}

export interface StoredAdministrationOptions {
  store: { projects: Store['projects'] };
  clock: Clock;
  randomness: Randomness;
  /** Called only when keys are created or shown. */
  sealer: () => Sealer;
  /** Chooses a new project's cell. Undefined selects the cell with the fewest projects. Throws `CommandRefused`. */
  chooseCell?: () => Promise<CellId | undefined>;
  /** Absent if no server runs on this store. */
  accounts?: AccountsInMemory;
  /** Resolves when the workers know a change, such as a revoked token: the command is done. Throws `CommandRefused`. */
  notifyWorkers?: (revoked?: TokenEntry) => Promise<void>;
}

export class StoredAdministration implements Administration {
  readonly #options: StoredAdministrationOptions;

  constructor(options: StoredAdministrationOptions) {
    this.#options = options;
  }

  async listProjects(): Promise<ProjectEntry[]> {
    const { store } = this.#options;
    const [projects, tokens] = await Promise.all([store.projects.listProjects(), store.projects.listTokens()]);
    return projects.map(({ projectId, name, createdAtMs }) => ({
      name,
      createdAtMs,
      tokens: tokens.filter((token) => token.projectId === projectId).length,
    }));
  }

  async createProject({ name }: { name: string }): Promise<CreatedProject> {
    if ((await this.#findProject(name)) !== undefined) throw new CommandRefused(`there is a project "${name}" already`);
    const project = await this.ensureProject(name);
    await this.#options.notifyWorkers?.();
    return project;
  }

  /** Returns the project and its keys. Creates a missing project. Throws `SealBroken`. */
  async ensureProject(name: string): Promise<CreatedProject> {
    checkProjectName(name);
    const { store, clock, sealer: openSealer, accounts, chooseCell } = this.#options;
    const cellId = (await this.#findProject(name)) ? undefined : await chooseCell?.();
    const sealer = openSealer();
    await checkSealer(store, sealer);
    const minted = sealKeys(mintSigningKeys(sealer.randomBytes), sealer);
    const project = { name, signingKeys: minted, nowMs: clock.wallMs(), ...(cellId !== undefined && { cellId }) };
    const { projectId } = await store.projects.ensureProject(project);
    const sealed = await store.projects.signingKeys({ projectId });
    accounts?.addProject({ projectId, name }, sealed);
    return { name, signingKeys: unsealKeys(sealed, name, sealer) };
  }

  async listTokens({ project: name }: { project?: string }): Promise<TokenEntry[]> {
    const { store } = this.#options;
    const only = name === undefined ? undefined : await this.#projectNamed(name);
    const nameById = new Map((await store.projects.listProjects()).map((project) => [project.projectId, project.name]));
    return (await store.projects.listTokens())
      .filter(({ projectId }) => only === undefined || projectId === only.projectId)
      .map((token) => entryOf(token, nameById.get(token.projectId) ?? ''));
  }

  async createToken({ project: projectName, scope, name }: CreateTokenRequest): Promise<CreatedToken> {
    if (name !== undefined && !isTokenName(name)) throw new CommandRefused(`a token's name ${TOKEN_NAME_RULE}`);
    const { store, clock, randomness, accounts, notifyWorkers } = this.#options;
    checkProjectName(projectName);
    const { projectId } = await this.#projectNamed(projectName);
    const token = mintRandomToken(projectName, (count) => randomness.bytes(count));
    const stored: Token = { tokenHash: hashToken(token), projectId, scope, createdAtMs: clock.wallMs() };
    if (name !== undefined) stored.name = name;
    await store.projects.addToken(stored);
    accounts?.admitStored(stored);
    await notifyWorkers?.();
    return { ...entryOf(stored, projectName), token };
  }

  async revokeToken({ id }: { id: string }): Promise<TokenEntry> {
    const { store, accounts, notifyWorkers } = this.#options;
    const token = (await store.projects.listTokens()).find(({ tokenHash }) => tokenIdOf(tokenHash) === id);
    if (token === undefined)
      throw new CommandRefused(`there is no token ${JSON.stringify(id)}; "waypost tokens" lists them`);
    // The store changes before the accounts in memory: a revoked token must stay revoked after a crash.
    await store.projects.removeToken({ tokenHash: token.tokenHash });
    accounts?.forget(token.tokenHash);
    const project = (await store.projects.listProjects()).find(({ projectId }) => projectId === token.projectId);
    const entry = entryOf(token, project?.name ?? '');
    await notifyWorkers?.(entry);
    return entry;
  }

  async #findProject(name: string): Promise<Project | undefined> {
    return (await this.#options.store.projects.listProjects()).find((project) => project.name === name);
  }

  async #projectNamed(name: string): Promise<Project> {
    const project = await this.#findProject(name);
    if (project) return project;
    throw new CommandRefused(`there is no project ${JSON.stringify(name)}; "waypost projects create" creates one`);
  }
}

function checkProjectName(name: string): void {
  if (!isName(name)) {
    throw new CommandRefused(
      `${JSON.stringify(name)} cannot be the name of a project: it must be 1 to 255 letters, digits, "-", "_" and "."`,
    );
  }
  if (isDevelopmentProject(name)) {
    throw new CommandRefused(`"${name}" is the name of a development account: choose another`);
  }
}

function entryOf({ tokenHash, scope, name, createdAtMs, lastUsedAtMs }: Token, project: string): TokenEntry {
  const entry: TokenEntry = { id: tokenIdOf(tokenHash), project, scope, createdAtMs };
  if (name !== undefined) entry.name = name;
  if (lastUsedAtMs !== undefined) entry.lastUsedAtMs = lastUsedAtMs;
  return entry;
}
