/** Who may call, and with which keys are deliveries signed? The store's answer, kept in memory. */

import type { Accounts, Caller, SigningKeys } from '../api/accounts.ts';
import { SealBroken, seal, unseal } from '../config/sealing.ts';
import type { Cell, Project, SealedKeys, Token, TokenScope } from '../engine/accounts/store.ts';
import { STALE, untilCurrent } from '../engine/loops/until-current.ts';
import { type CellId, FIRST_CELL, type Millis, type ProjectId } from '../engine/model.ts';
import type { Clock, EventLog } from '../engine/ports.ts';
import { mintSigningKey } from '../protocol/ids.ts';
import type { Store } from '../store/store.ts';

/** What turns signing keys into what the store keeps, and back. */
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

/** Throws `SealBroken` when they were sealed with another encryption key. `project`: whose they are. */
export function unsealKeys(
  sealed: SealedKeys,
  project: string,
  { encryptionKey }: Pick<Sealer, 'encryptionKey'>,
): SigningKeys {
  const what = `the signing keys of the project "${project}"`;
  return { current: unseal(sealed.current, encryptionKey, what), next: unseal(sealed.next, encryptionKey, what) };
}

/**
 * Throws `SealBroken` when the store's projects have keys that were sealed with another encryption key. Whoever seals
 * something new asks this first: no server starts on a store with keys of two kinds.
 */
export async function checkSealer(store: { projects: Store['projects'] }, sealer: Sealer): Promise<void> {
  const [project] = await store.projects.listProjects();
  if (project) unsealKeys(await store.projects.signingKeys(project), project.name, sealer);
}

/** A new random pair. */
export function mintSigningKeys(randomBytes: (count: number) => Uint8Array): SigningKeys {
  return { current: mintSigningKey(randomBytes), next: mintSigningKey(randomBytes) };
}

/** Projects, each with its cell. */
export type Residents = ReadonlyMap<ProjectId, Project & { cellId: CellId }>;

interface KeyPair {
  sealed: SealedKeys;
  keys: SigningKeys;
}

interface Admitted {
  caller: Caller;
  /** Absent: the token is not in the store, so its use is not noted there either. */
  useNotedAtMs?: Millis;
}

/** Exact enough to find tokens that are not used any more, and so rare that the writes cost nothing. */
const USE_NOTED_EVERY_MS = 3_600_000;

/**
 * An unknown token makes us read everything again, but not more often than this: guessed tokens must cost the store
 * little.
 */
const STRANGERS_EVERY_MS = 1_000;

export class StoredAccounts implements Accounts {
  readonly #store: { projects: Store['projects'] };
  readonly #sealer: Sealer;
  readonly #clock: Clock;
  readonly #admittedByTokenHash = new Map<string, Admitted>();
  readonly #projectByName = new Map<string, ProjectId>();
  #cells: readonly Cell[] = [];
  #residents: Residents = new Map();
  #onRead = (): void => {};
  readonly #pairByProject = new Map<ProjectId, KeyPair>();
  /** The last rotation of each project: the next one starts from its result. */
  readonly #rotations = new Map<ProjectId, Promise<SigningKeys>>();
  #tellOthers = async (): Promise<void> => {};
  /** Whether other processes change the accounts in the store. */
  readonly #isShared: boolean;
  readonly #log: EventLog | undefined;
  /** Projects of which the log has been told that their keys cannot be read. */
  readonly #unreadable = new Set<ProjectId>();
  /** Counts changes of what is in memory: what was read before a change may be older than it. */
  #changes = 0;
  /** The store's version of what is in memory. */
  #version = 0;
  /** As `elapsedMs` counts: until then no change is reported as done before this worker has read it. */
  #holdsUntilMs = -Infinity;
  /** Callers wait for this while it is not known whether what is in memory is up to date. */
  #unsure: PromiseWithResolvers<void> | undefined;
  /** The last read that an unknown token has caused. */
  #look: { atMs: Millis; done: Promise<void>; isUnderWay: boolean } | undefined;

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

  /** Reads all tokens and keys. Throws `SealBroken` when the encryption key is not the one of this store. */
  static async open(
    store: { projects: Store['projects'] },
    sealer: Sealer,
    clock: Clock,
    { isShared = false, log }: { isShared?: boolean; log?: EventLog } = {},
  ): Promise<StoredAccounts> {
    const accounts = new StoredAccounts(store, sealer, clock, isShared, log);
    await accounts.#read((project, sealed) => accounts.learnProject(project, sealed));
    return accounts;
  }

  /**
   * Reads everything again. When it resolves, what others have added, changed and revoked is in force. A project whose
   * keys cannot be decrypted keeps its state, or remains unknown; other projects are not affected. Throws `StoreUnavailable` and changes
   * nothing.
   */
  refresh(): Promise<void> {
    return this.#read((project, sealed) => this.#learnReadable(project, sealed));
  }

  async #read(learn: StoredAccounts['learnProject']): Promise<void> {
    const before = this.#changes;
    const { version, projects, tokens, cells } = await this.#store.projects.readAccounts();
    if (this.#changes !== before) return this.#read(learn);
    this.#cells = cells;
    this.#residents = cells.length === 0 ? new Map() : new Map(projects.map((project) => [project.projectId, project]));
    for (const project of projects) learn(project, project.signingKeys);
    const stored = new Set(tokens.map(({ tokenHash }) => tokenHash));
    for (const [tokenHash, { useNotedAtMs }] of this.#admittedByTokenHash) {
      if (useNotedAtMs !== undefined && !stored.has(tokenHash)) this.forget(tokenHash);
    }
    for (const token of tokens) if (this.#pairByProject.has(token.projectId)) this.admitStored(token);
    this.#onRead();
    this.#version = version;
  }

  /** Empty as long as there is only one. */
  get cells(): readonly Cell[] {
    return this.#cells;
  }

  /** Where each project lives; empty as long as there is only one cell. */
  get residents(): Residents {
    return this.#residents;
  }

  /** Of a project that may be in one of several cells, for the log. */
  nameOf(projectId: ProjectId): string {
    return this.#residents.get(projectId)?.name ?? String(projectId);
  }

  /** From now on calls `listener` whenever the accounts were read, before this worker says that it goes by them. */
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
   * The store had `version` when it was asked. Until `untilMs`, no change is reported as done before this worker has
   * read it.
   */
  noteNewest(version: number, untilMs: Millis): void {
    if (version !== this.#version) return;
    this.#holdsUntilMs = Math.max(this.#holdsUntilMs, untilMs);
    this.#unsure?.resolve();
    this.#unsure = undefined;
  }

  /** The store could not be asked, or read. */
  noteUnknown(error: Error): void {
    this.#unsure?.reject(error);
    this.#unsure = undefined;
  }

  catchUp(projectId?: ProjectId): Promise<void> | undefined {
    if (!this.#isShared || this.#clock.elapsedMs <= this.#holdsUntilMs) return undefined;
    const cellId = projectId === undefined ? undefined : this.#residents.get(projectId)?.cellId;
    if (cellId !== undefined && cellId !== FIRST_CELL) return undefined; // works without the directory
    this.#unsure ??= Promise.withResolvers();
    return this.#unsure.promise;
  }

  lookAgain(): Promise<void> | undefined {
    if (!this.#isShared) return undefined;
    const { elapsedMs } = this.#clock;
    if (this.#look?.isUnderWay) return this.#look.done;
    if (this.#look && elapsedMs - this.#look.atMs < STRANGERS_EVERY_MS) return undefined;
    const look = { atMs: elapsedMs, done: this.refresh(), isUnderWay: true };
    this.#look = look;
    look.done = look.done.finally(() => {
      look.isUnderWay = false;
    });
    return look.done;
  }

  /** A project that the store has. Throws `SealBroken` when its keys were sealed with another encryption key. */
  learnProject({ projectId, name }: Pick<Project, 'projectId' | 'name'>, sealed: SealedKeys): void {
    this.#remember({ projectId, name }, sealed);
    this.#projectByName.set(name, projectId);
  }

  /** Admits a token that the store has. */
  admitStored({ tokenHash, projectId, scope, name: tokenName, lastUsedAtMs = -Infinity }: Token): void {
    // Its use may have been noted since the list was read.
    const knownAtMs = this.#admittedByTokenHash.get(tokenHash)?.useNotedAtMs ?? -Infinity;
    const useNotedAtMs = Math.max(lastUsedAtMs, knownAtMs);
    this.#changes += 1;
    const caller: Caller = { projectId, scope, ...(tokenName !== undefined && { tokenName }) };
    this.#admittedByTokenHash.set(tokenHash, { caller, useNotedAtMs });
  }

  /** Admits a token for as long as this process lives, without saving it. */
  admit(tokenHash: string, projectId: ProjectId, scope: TokenScope): void {
    this.#admittedByTokenHash.set(tokenHash, { caller: { projectId, scope } });
  }

  /** From now on the token is refused. */
  forget(tokenHash: string): void {
    this.#changes += 1;
    this.#admittedByTokenHash.delete(tokenHash);
  }

  /** Looked up by a hash of what the caller sent, so the time it takes says nothing about any token. */
  authenticate(tokenHash: string): Caller | undefined {
    const admitted = this.#admittedByTokenHash.get(tokenHash);
    if (admitted?.useNotedAtMs !== undefined) this.#noteUse(tokenHash, admitted, admitted.useNotedAtMs);
    return admitted?.caller;
  }

  projectNamed(name: string): ProjectId | undefined {
    return this.#projectByName.get(name);
  }

  projectName(projectId: ProjectId): string {
    const name = this.#findName(projectId);
    if (name === undefined) throw new Error(`there is no project ${projectId}`);
    return name;
  }

  /** For metrics and events, which may come before the name is known here. */
  shownName(projectId: ProjectId): string {
    return this.#findName(projectId) ?? `number ${projectId}`;
  }

  async signingKeys(projectId: ProjectId): Promise<SigningKeys> {
    return this.signingKeysNow(projectId);
  }

  /** As above, at once: a delivery asks at every attempt. */
  signingKeysNow(projectId: ProjectId): SigningKeys {
    return this.#pairOf(projectId).keys;
  }

  signingKeysKnown(projectId: ProjectId): readonly string[] {
    const pair = this.#pairByProject.get(projectId);
    return pair ? [pair.keys.current, pair.keys.next] : [];
  }

  rotate(projectId: ProjectId): Promise<SigningKeys> {
    // After the rotation before, with success or not: two at the same time must move the keys on twice.
    const before = this.#rotations.get(projectId)?.catch(() => undefined) ?? Promise.resolve();
    const rotation = before.then(async () => {
      const keys = await this.#rotateNow(projectId);
      await this.tellOthers();
      return keys;
    });
    this.#rotations.set(projectId, rotation);
    return rotation;
  }

  /** From now on a change is answered only after `tell`, which informs the other workers of it, has resolved. */
  tellOfChanges(tell: () => Promise<void>): void {
    this.#tellOthers = tell;
  }

  /** Resolves when the other workers know of what has changed. Throws `StoreUnavailable` when some do not say so. */
  tellOthers(): Promise<void> {
    return this.#tellOthers();
  }

  /** `undefined`: it is not known here, or not yet. */
  #findName(projectId: ProjectId): string | undefined {
    for (const [name, id] of this.#projectByName) if (id === projectId) return name;
    return undefined;
  }

  /** The request that used the token does not wait for this. */
  #noteUse(tokenHash: string, admitted: Admitted, notedAtMs: Millis): void {
    const nowMs = this.#clock.wallMs();
    if (nowMs - notedAtMs < USE_NOTED_EVERY_MS) return;
    admitted.useNotedAtMs = nowMs;
    // Expected: the store cannot write now. A use in an hour is noted again, and the caller's request shows the failure.
    this.#store.projects.noteTokenUse({ tokenHash, nowMs }).catch(() => {});
  }

  async #rotateNow(projectId: ProjectId): Promise<SigningKeys> {
    return untilCurrent('the pair of signing keys', async () => {
      const { sealed, keys } = this.#pairOf(projectId);
      const next = sealKeys({ current: keys.next, next: mintSigningKey(this.#sealer.randomBytes) }, this.#sealer);
      const inForce = await this.#store.projects.replaceSigningKeys({ projectId, expected: sealed, next });
      const pair = this.#remember({ projectId, name: this.projectName(projectId) }, inForce);
      // Otherwise another process has rotated meanwhile: try again from its result.
      return inForce.current === next.current && inForce.next === next.next ? pair.keys : STALE;
    });
  }

  #learnReadable(project: Pick<Project, 'projectId' | 'name'>, sealed: SealedKeys): void {
    try {
      this.learnProject(project, sealed);
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
    this.#pairByProject.set(projectId, pair);
    return pair;
  }

  #pairOf(projectId: ProjectId): KeyPair {
    const pair = this.#pairByProject.get(projectId);
    if (pair === undefined) throw new Error(`there is no project ${projectId}`);
    return pair;
  }
}
