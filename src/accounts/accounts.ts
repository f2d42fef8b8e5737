/** Who may call, and what do their deliveries get signed with? The store's answer, kept in memory. */
import type { Accounts, Caller, SigningKeys } from '../api/accounts.ts';
import { seal, unseal } from '../config/sealing.ts';
import type { Millis, ProjectId } from '../engine/model.ts';
import type { Clock } from '../engine/ports.ts';
import type { Project, ProjectStore, SealedKeys, Token, TokenScope } from '../engine/stores.ts';
import { STALE, untilCurrent } from '../engine/until-current.ts';
import { mintSigningKey } from '../protocol/ids.ts';

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

/** Throws `SealBroken` when they were sealed with another encryption key. */
export function unsealKeys(sealed: SealedKeys, { encryptionKey }: Sealer): SigningKeys {
  return { current: unseal(sealed.current, encryptionKey), next: unseal(sealed.next, encryptionKey) };
}

/** A pair that nobody has yet. */
export function mintSigningKeys(randomBytes: (count: number) => Uint8Array): SigningKeys {
  return { current: mintSigningKey(randomBytes), next: mintSigningKey(randomBytes) };
}

interface KeyPair {
  sealed: SealedKeys;
  keys: SigningKeys;
}

interface Admitted {
  caller: Caller;
  /** Absent: the token is not in the store, so its use is not noted there either. */
  useNotedAtMs?: Millis;
}

/** Close enough to tell which tokens nobody uses any more, and a write so rare that it costs nothing. */
const USE_NOTED_EVERY_MS = 3_600_000;

/** How soon all is read again because somebody comes with a token that nobody has: whoever guesses costs the store little. */
const STRANGERS_EVERY_MS = 1_000;

export class StoredAccounts implements Accounts {
  readonly #store: { projects: ProjectStore };
  readonly #sealer: Sealer;
  readonly #clock: Clock;
  readonly #admittedByTokenHash = new Map<string, Admitted>();
  readonly #projectByName = new Map<string, ProjectId>();
  readonly #pairByProject = new Map<ProjectId, KeyPair>();
  /** The last rotation of each project: the next one builds on what it left. */
  readonly #rotations = new Map<ProjectId, Promise<SigningKeys>>();
  #tellOfRotation = async (): Promise<void> => {};
  /** Whether others change what the store has. */
  readonly #isShared: boolean;
  /** Changes of what is in memory: what was read before one of them may be older than it. */
  #changes = 0;
  /** Of what is in memory, as the store counts. */
  #version = 0;
  /** As `elapsedMs` counts: until then the store would have waited for this worker before it called a change done. */
  #holdsUntilMs = -Infinity;
  /** Callers who wait until it is known again whether what is in memory holds. */
  #unsure: PromiseWithResolvers<void> | undefined;
  /** The reading that a stranger has set off. */
  #look: { atMs: Millis; done: Promise<void>; isUnderWay: boolean } | undefined;

  private constructor(store: { projects: ProjectStore }, sealer: Sealer, clock: Clock, isShared: boolean) {
    this.#store = store;
    this.#sealer = sealer;
    this.#clock = clock;
    this.#isShared = isShared;
  }

  /**
   * Reads all tokens and keys; `isShared`: others may change them. Throws `SealBroken` when the encryption key is not the
   * one of this store.
   */
  static async open(
    store: { projects: ProjectStore },
    sealer: Sealer,
    clock: Clock,
    { isShared = false }: { isShared?: boolean } = {},
  ): Promise<StoredAccounts> {
    const accounts = new StoredAccounts(store, sealer, clock, isShared);
    await accounts.refresh();
    return accounts;
  }

  /**
   * Reads all anew: what others have added, changed and revoked is in force when it resolves. Throws `SealBroken`, and
   * `StoreUnavailable` with everything as it was.
   */
  async refresh(): Promise<void> {
    const before = this.#changes;
    const { version, projects, tokens } = await this.#store.projects.readAccounts();
    if (this.#changes !== before) return this.refresh();
    for (const project of projects) this.learnProject(project, project.signingKeys);
    const stored = new Set(tokens.map(({ tokenHash }) => tokenHash));
    for (const [tokenHash, { useNotedAtMs }] of this.#admittedByTokenHash) {
      if (useNotedAtMs !== undefined && !stored.has(tokenHash)) this.forget(tokenHash);
    }
    for (const token of tokens) this.admitStored(token);
    this.#version = version;
  }

  get version(): number {
    return this.#version;
  }

  get sharedVersion(): number | undefined {
    return this.#isShared ? this.#version : undefined;
  }

  /** The store had `version` when it was asked, and will not call a change done before `untilMs` without this worker. */
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

  catchUp(): Promise<void> | undefined {
    if (!this.#isShared || this.#clock.elapsedMs <= this.#holdsUntilMs) return undefined;
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
    this.#projectByName.set(name, projectId);
    this.#remember(projectId, sealed);
  }

  /** Lets a token in that the store has. */
  admitStored({ tokenHash, projectId, scope, lastUsedAtMs = -Infinity }: Token): void {
    // Its use may have been noted since the list was read.
    const knownAtMs = this.#admittedByTokenHash.get(tokenHash)?.useNotedAtMs ?? -Infinity;
    const useNotedAtMs = Math.max(lastUsedAtMs, knownAtMs);
    this.#changes += 1;
    this.#admittedByTokenHash.set(tokenHash, { caller: { projectId, scope }, useNotedAtMs });
  }

  /** Lets a token in for as long as this process lives, without saving it. */
  admit(tokenHash: string, projectId: ProjectId, scope: TokenScope): void {
    this.#admittedByTokenHash.set(tokenHash, { caller: { projectId, scope } });
  }

  /** From now on nobody gets in with it. */
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

  async signingKeys(projectId: ProjectId): Promise<SigningKeys> {
    return this.signingKeysNow(projectId);
  }

  /** As above, at once: a delivery asks at every attempt. */
  signingKeysNow(projectId: ProjectId): SigningKeys {
    return this.#pairOf(projectId).keys;
  }

  rotate(projectId: ProjectId): Promise<SigningKeys> {
    // After the one before, however that ended: two at once must move the keys on twice.
    const before = this.#rotations.get(projectId)?.catch(() => undefined) ?? Promise.resolve();
    const rotation = before.then(async () => {
      const keys = await this.#rotateNow(projectId);
      await this.#tellOfRotation();
      return keys;
    });
    this.#rotations.set(projectId, rotation);
    return rotation;
  }

  /** From now on a rotation is answered once `tell`, which lets others know of it, has resolved. */
  tellOfRotations(tell: () => Promise<void>): void {
    this.#tellOfRotation = tell;
  }

  /** Beside the request that used the token, which does not wait for it. */
  #noteUse(tokenHash: string, admitted: Admitted, notedAtMs: Millis): void {
    const nowMs = this.#clock.wallMs();
    if (nowMs - notedAtMs < USE_NOTED_EVERY_MS) return;
    admitted.useNotedAtMs = nowMs;
    // A store that cannot write now: the next hour is noted again, and whoever calls is told by what the call does.
    this.#store.projects.noteTokenUse({ tokenHash, nowMs }).catch(() => {});
  }

  async #rotateNow(projectId: ProjectId): Promise<SigningKeys> {
    return untilCurrent('the pair of signing keys', async () => {
      const { sealed, keys } = this.#pairOf(projectId);
      const next = sealKeys({ current: keys.next, next: mintSigningKey(this.#sealer.randomBytes) }, this.#sealer);
      const inForce = await this.#store.projects.replaceSigningKeys({ projectId, expected: sealed, next });
      const pair = this.#remember(projectId, inForce);
      // Otherwise another process rotated meanwhile: go on from there.
      return inForce.current === next.current && inForce.next === next.next ? pair.keys : STALE;
    });
  }

  #remember(projectId: ProjectId, sealed: SealedKeys): KeyPair {
    const pair = { sealed, keys: Object.freeze(unsealKeys(sealed, this.#sealer)) };
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
