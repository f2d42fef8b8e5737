/** What is asked of a store about projects, their tokens and keys, the cells that they live in, and their moves (see `stores.ts`). */
import type { CellId, InProject, Millis, ProjectId } from '../model.ts';

export interface Project {
  projectId: ProjectId;
  /** `UserID` of the project's tokens. */
  name: string;
  createdAtMs: Millis;
}

/** One of several stores among which projects are divided. */
export interface Cell {
  cellId: CellId;
  name: string;
  /** Where its database is, sealed like signing keys; empty for the first cell, which is where the list of cells is. */
  sealedUrl: string;
  addedAtMs: Millis;
  /** Whether new projects go elsewhere. */
  isDraining: boolean;
}

/** `publish-only` may publish, enqueue and send batches; `read-only` may read, signing keys excepted. */
export const TOKEN_SCOPES = ['full', 'publish-only', 'read-only'] as const;

export type TokenScope = (typeof TOKEN_SCOPES)[number];

export interface Token {
  /** SHA-256 of the whole token, base64url: the token itself is kept nowhere. */
  tokenHash: string;
  projectId: ProjectId;
  scope: TokenScope;
  /** What its owner calls it. */
  name?: string;
  createdAtMs: Millis;
  /** Exact to about an hour; absent: never. */
  lastUsedAtMs?: Millis;
}

/** A change that a full token of the project makes. In the store's transaction, that token must still be there. */
export interface InProjectByToken extends InProject {
  /** Its hash. */
  by: string;
}

/** Projects, tokens and keys, all of one moment. */
export interface AccountsState {
  /** Grows with each change of a project, token or key, except the last use of a token. */
  version: number;
  projects: (Project & { signingKeys: SealedKeys; cellId: CellId })[];
  tokens: Token[];
  /** Empty as long as there is only one. */
  cells: Cell[];
}

/** `cancelled`: what was copied is being removed again. Once it is `switched` the project is the new cell's. */
export type MovePhase = 'copying' | 'paused' | 'switched' | 'cancelled';

/** A project on its way from one cell to another. */
export interface ProjectMove extends InProject {
  fromCell: CellId;
  toCell: CellId;
  phase: MovePhase;
  begunAtMs: Millis;
  /** The command that moves it. */
  mover: string;
  /** When that command was last known to be running. */
  seenAtMs: Millis;
}

/** Nothing is done for a command whose move another one has taken over. */
export interface InMove extends InProject {
  mover: string;
}

/** Signing keys as they lie in the store: encrypted by `config`'s encryption key. Opaque to the store. */
export interface SealedKeys {
  current: string;
  next: string;
}
