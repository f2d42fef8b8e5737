/** The tokens and signing keys of all projects, cached in memory from the store. */

import type { Accounts, Caller, SigningKeys } from '../api/accounts.ts';
import { SealBroken, seal, unseal } from '../config/sealing.ts';
import type { Cell, Project, SealedKeys, Token, TokenScope } from '../engine/accounts/store.ts';
import { retryWhileStale, STALE } from '../engine/loops/retry-while-stale.ts';
import { type CellId, FIRST_CELL, type Millis, type ProjectId } from '../engine/model.ts';
import type { Clock, EventLog } from '../engine/ports.ts';
import { mintSigningKey } from '../protocol/ids.ts';
import type { Store } from '../store/store.ts';

/** Encrypts and decrypts signing keys for the store. */
export interface Sealer {
  encryptionKey: Uint8Array;
  randomBytes: (count: number) => Uint8Array;
}

export function sealKeys(keys: SigningKeys, { encryptionKey, randomBytes }: Sealer): SealedKeys {
  return {
    current: seal(keys.current, encryptionKey, randomBytes),
    next: seal(keys.next, encryptionKey, randomBytes),
  };
}

/** Throws `SealBroken` when the keys were sealed with another encryption key. `project`: the name of the project. */
export function unsealKeys(
  sealed: SealedKeys,
  project: string,
  { encryptionKey }: Pick<Sealer, 'encryptionKey'>,
): SigningKeys {
  const what = `the signing keys of the project "${project}"`;
  return { current: unseal(sealed.current, encryptionKey, what), next: unseal(sealed.next, encryptionKey, what) };
}

/**
 * Throws `SealBroken` when the store's signing keys were sealed with another encryption key. Call this before sealing new
 * keys: no server starts on a store whose keys were sealed with two encryption keys.
 */
export async function checkSealer(store: { projects: Store['projects'] }, sealer: Sealer): Promise<void> {
  const [project] = await store.projects.listProjects();
  if (project) unsealKeys(await store.projects.signingKeys(project), project.name, sealer);
}

/** Returns a new random pair of signing keys. */
export function mintSigningKeys(randomBytes: (count: number) => Uint8Array): SigningKeys {
  return { current: mintSigningKey(randomBytes), next: mintSigningKey(randomBytes) };
}

/** The projects with their cells. */
export type PlacedProjects = ReadonlyMap<ProjectId, Project & { cellId: CellId }>;

interface KeyPair {
  sealed: SealedKeys;
  keys: SigningKeys;
}

interface AdmittedToken {
  caller: Caller;
  /** When the store last recorded a use of the token. Absent if the token is not in the store. */
  useNotedAtMs?: Millis;
}

/** The minimum interval between two records of a token's use: few writes, but accurate enough to find unused tokens. */
const USE_RECORD_INTERVAL_MS = 3_600_000;

/** Unknown tokens cause at most one refresh in this interval, so that guessed tokens do not load the store. */
const UNKNOWN_TOKEN_INTERVAL_MS = 1_000;

export class StoredAccounts implements Accounts {
  readonly #store: { projects: Store['projects'] };
  readonly #sealer: Sealer;
  readonly #clock: Clock;
  readonly #admittedByTokenHash = new Map<string, AdmittedToken>();
  readonly #projectByName = new Map<string, ProjectId>();
  #cells: readonly Cell[] = [];
  #placedProjects: PlacedProjects = new Map();
  #onRead = (): void => {};
  readonly #keyPairByProject = new Map<ProjectId, KeyPair>();
  /** The last rotation of each project. The next rotation starts from the result of the last rotation. */
  readonly #rotations = new Map<ProjectId, Promise<SigningKeys>>();
  #notifyOthers = async (): Promise<void> => {};
  /** Whether other processes change the accounts in the store. */
  readonly #isShared: boolean;
  readonly #log: EventLog | undefined;
  /** Projects whose unreadable keys were already logged. */
  readonly #unreadable = new Set<ProjectId>();
  /** Counts the changes of the cache: a read that started before a change may have missed that change. */
  #changes = 0;
  /** The version of the accounts in memory, as numbered by the store. */
  #version = 0;
  /**
   * Until this elapsed time, the accounts in memory are current: no change is reported as done before this worker has
   * read the change.
   */
  #currentUntilMs = -Infinity;
  /** Callers wait for this promise while the cache may be outdated. */
  #whenCurrent: PromiseWithResolvers<void> | undefined;
  /** The last refresh that an unknown token caused. */
  #tokenRefresh: { atMs: Millis; done: Promise<void>; isPending: boolean } | undefined;

  private constructor(
    store: { projects: Store['projects'] },
    sealer: Sealer,
    clock: Clock,
    isShared: boolean,
    log: EventLog | undefined,
  ) {
    this.#store = store;
    this.#sealer = sealer;
    this.#clock = clock;
    this.#isShared = isShared;
    this.#log = log;
  }

  /** Reads all tokens and keys. Throws `SealBroken` when the encryption key is not the store's. */
  static async open(
    store: { projects: Store['projects'] },
    sealer: Sealer,
    clock: Clock,
    { isShared = false, log }: { isShared?: boolean; log?: EventLog } = {},
  ): Promise<StoredAccounts> {
    const accounts = new StoredAccounts(store, sealer, clock, isShared, log);
    await accounts.#read((project, sealed) => accounts.addProject(project, sealed));
    return accounts;
  }

  /**
   * Reads all accounts again. Resolves when the changes of other workers are in force. A project whose keys cannot be
   * decrypted keeps its previous keys, or remains unknown; other projects are not affected. If the refresh rejects with
   * `StoreUnavailable`, nothing has changed.
   */
  refresh(): Promise<void> {
    return this.#read((project, sealed) => this.#addReadable(project, sealed));
  }

  async #read(add: StoredAccounts['addProject']): Promise<void> {
    const before = this.#changes;
    const { version, projects, tokens, cells } = await this.#store.projects.readAccounts();
    if (this.#changes !== before) return this.#read(add);
    this.#cells = cells;
    this.#placedProjects =
      cells.length === 0 ? new Map() : new Map(projects.map((project) => [project.projectId, project]));
    for (const project of projects) add(project, project.signingKeys);
    const stored = new Set(tokens.map(({ tokenHash }) => tokenHash));
    for (const [tokenHash, { useNotedAtMs }] of this.#admittedByTokenHash) {
      if (useNotedAtMs !== undefined && !stored.has(tokenHash)) this.forget(tokenHash);
    }
    for (const token of tokens) if (this.#keyPairByProject.has(token.projectId)) this.admitStored(token);
    this.#onRead();
    this.#version = version;
  }

  /** The cells of the installation. Empty while there is only one cell. */
  get cells(): readonly Cell[] {
    return this.#cells;
  }

  /** The cell of each project; empty while there is only one cell. */
  get placedProjects(): PlacedProjects {
    return this.#placedProjects;
  }

  /** The name of a project for the log. Returns the project's id if the name is unknown. */
  nameOf(projectId: ProjectId): string {
    return this.#placedProjects.get(projectId)?.name ?? String(projectId);
  }

  /** Calls `listener` after each read of the accounts, before this worker reports the new version. */
  onRead(listener: () => void): void {
    this.#onRead = listener;
  }

  get version(): number {
    return this.#version;
  }

  get sharedVersion(): number | undefined {
    return this.#isShared ? this.#version : undefined;
  }

  /**
   * Notes the store's version from the response to a heartbeat. If this worker has read this version, the worker's
   * accounts are current until `untilMs`: until this time, no change is reported as done before this worker has read the
   * change.
   */
  noteNewest(version: number, untilMs: Millis): void {
    if (version !== this.#version) return;
    this.#currentUntilMs = Math.max(this.#currentUntilMs, untilMs);
    this.#whenCurrent?.resolve();
    this.#whenCurrent = undefined;
  }

  /** Notes that the store's version or accounts could not be read. */
  noteUnknown(error: Error): void {
    this.#whenCurrent?.reject(error);
    this.#whenCurrent = undefined;
  }

  catchUp(projectId?: ProjectId): Promise<void> | undefined {
    if (!this.#isShared || this.#clock.elapsedMs <= this.#currentUntilMs) return undefined;
    const cellId = projectId === undefined ? undefined : this.#placedProjects.get(projectId)?.cellId;
    if (cellId !== undefined && cellId !== FIRST_CELL) return undefined; // other cells need no directory
    this.#whenCurrent ??= Promise.withResolvers();
    return this.#whenCurrent.promise;
  }

  refreshForUnknownToken(): Promise<void> | undefined {
    if (!this.#isShared) return undefined;
    const { elapsedMs } = this.#clock;
    if (this.#tokenRefresh?.isPending) return this.#tokenRefresh.done;
    if (this.#tokenRefresh && elapsedMs - this.#tokenRefresh.atMs < UNKNOWN_TOKEN_INTERVAL_MS) return undefined;
    const refresh = { atMs: elapsedMs, done: this.refresh(), isPending: true };
    this.#tokenRefresh = refresh;
    refresh.done = refresh.done.finally(() => {
      refresh.isPending = false;
    });
    return refresh.done;
  }

  /** Adds a project of the store. Throws `SealBroken` when the project's keys were sealed with another encryption key. */
  addProject({ projectId, name }: Pick<Project, 'projectId' | 'name'>, sealed: SealedKeys): void {
    this.#remember({ projectId, name }, sealed);
    this.#projectByName.set(name, projectId);
  }

  /** Admits a token of the store. */
  admitStored({ tokenHash, projectId, scope, name: tokenName, lastUsedAtMs = -Infinity }: Token): void {
    // The use of the token may have been recorded since the list was read.
    const knownAtMs = this.#admittedByTokenHash.get(tokenHash)?.useNotedAtMs ?? -Infinity;
    const useNotedAtMs = Math.max(lastUsedAtMs, knownAtMs);
    this.#changes += 1;
    const caller: Caller = { projectId, scope, ...(tokenName !== undefined && { tokenName }) };
    this.#admittedByTokenHash.set(tokenHash, { caller, useNotedAtMs });
  }

  /** Admits a token until this process ends, without saving the token. */
  admit(tokenHash: string, projectId: ProjectId, scope: TokenScope): void {
    this.#admittedByTokenHash.set(tokenHash, { caller: { projectId, scope } });
  }

  /** Refuses the token from now on. */
  forget(tokenHash: string): void {
    this.#changes += 1;
    this.#admittedByTokenHash.delete(tokenHash);
  }

  /** Looks up a token by its hash, so that the duration of the look-up reveals nothing about any token. */
  authenticate(tokenHash: string): Caller | undefined {
    const admitted = this.#admittedByTokenHash.get(tokenHash);
    if (admitted?.useNotedAtMs !== undefined) this.#noteUse(tokenHash, admitted, admitted.useNotedAtMs);
    return admitted?.caller;
  }

  projectByName(name: string): ProjectId | undefined {
    return this.#projectByName.get(name);
  }

  projectName(projectId: ProjectId): string {
    const name = this.#findName(projectId);
    if (name === undefined) throw new Error(`there is no project ${projectId}`);
    return name;
  }

  /** The name of a project for metrics and operator events, which may need the name before this worker knows the name. */
  displayName(projectId: ProjectId): string {
    return this.#findName(projectId) ?? `number ${projectId}`;
  }

  async signingKeys(projectId: ProjectId): Promise<SigningKeys> {
    return this.signingKeysSync(projectId);
  }

  /** Like `signingKeys`, but synchronous, for deliveries. */
  signingKeysSync(projectId: ProjectId): SigningKeys {
    return this.#keyPairOf(projectId).keys;
  }

  cachedSigningKeys(projectId: ProjectId): readonly string[] {
    const pair = this.#keyPairByProject.get(projectId);
    return pair ? [pair.keys.current, pair.keys.next] : [];
  }

  rotate(projectId: ProjectId): Promise<SigningKeys> {
    // Waits for the previous rotation, even if that rotation failed: two concurrent rotations must rotate the keys twice.
    const before = this.#rotations.get(projectId)?.catch(() => undefined) ?? Promise.resolve();
    const rotation = before.then(async () => {
      const keys = await this.#rotateNow(projectId);
      await this.notifyOthers();
      return keys;
    });
    this.#rotations.set(projectId, rotation);
    return rotation;
  }

  /** A change is reported as done only after `notify`, which notifies the other workers, has resolved. */
  onChange(notify: () => Promise<void>): void {
    this.#notifyOthers = notify;
  }

  /**
   * Resolves when the other workers have read the changes. Throws `StoreUnavailable` when some workers do not report
   * this.
   */
  notifyOthers(): Promise<void> {
    return this.#notifyOthers();
  }

  /** Returns undefined if this worker does not know the project (yet). */
  #findName(projectId: ProjectId): string | undefined {
    for (const [name, id] of this.#projectByName) if (id === projectId) return name;
    return undefined;
  }

  /** Records a use of the token. The request that used the token does not wait for the record. */
  #noteUse(tokenHash: string, admitted: AdmittedToken, notedAtMs: Millis): void {
    const nowMs = this.#clock.wallMs();
    if (nowMs - notedAtMs < USE_RECORD_INTERVAL_MS) return;
    admitted.useNotedAtMs = nowMs;
    // Errors are ignored: if the store is unavailable, the request itself reports this, and a use after an hour is
    // recorded again.
    this.#store.projects.noteTokenUse({ tokenHash, nowMs }).catch(() => {});
  }

  async #rotateNow(projectId: ProjectId): Promise<SigningKeys> {
    return retryWhileStale('the pair of signing keys', async () => {
      const { sealed, keys } = this.#keyPairOf(projectId);
      const next = sealKeys({ current: keys.next, next: mintSigningKey(this.#sealer.randomBytes) }, this.#sealer);
      const inForce = await this.#store.projects.replaceSigningKeys({ projectId, expected: sealed, next });
      const pair = this.#remember({ projectId, name: this.projectName(projectId) }, inForce);
      // If the keys differ, another process has rotated the keys at the same time: retry from the keys of the other
      // process.
      return inForce.current === next.current && inForce.next === next.next ? pair.keys : STALE;
    });
  }

  #addReadable(project: Pick<Project, 'projectId' | 'name'>, sealed: SealedKeys): void {
    try {
      this.addProject(project, sealed);
      this.#unreadable.delete(project.projectId);
    } catch (error) {
      if (!(error instanceof SealBroken)) throw error;
      if (this.#unreadable.has(project.projectId)) return;
      this.#unreadable.add(project.projectId);
      this.#log?.error('keys_unreadable', { project: project.name, reason: error.message });
    }
  }

  #remember({ projectId, name }: Pick<Project, 'projectId' | 'name'>, sealed: SealedKeys): KeyPair {
    const pair = { sealed, keys: Object.freeze(unsealKeys(sealed, name, this.#sealer)) };
    this.#changes += 1;
    this.#keyPairByProject.set(projectId, pair);
    return pair;
  }

  #keyPairOf(projectId: ProjectId): KeyPair {
    const pair = this.#keyPairByProject.get(projectId);
    if (pair === undefined) throw new Error(`there is no project ${projectId}`);
    return pair;
  }
}
