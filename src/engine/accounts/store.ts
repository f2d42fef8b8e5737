/** Types of the store's operations on projects, tokens, keys, cells and moves of projects (see `stores.ts`). */
import type { CellId, InProject, Millis, ProjectId } from '../model.ts';

export interface Project {
  projectId: ProjectId;
  /** The name of the project, which is also the `UserID` of its tokens. */
  name: string;
  createdAtMs: Millis;
}

/** One of several stores among which projects are divided. */
export interface Cell {
  cellId: CellId;
  name: string;
  /**
   * The URL of the cell's database, encrypted like signing keys; empty for the first cell, which has the list of cells.
   */
  sealedUrl: string;
  addedAtMs: Millis;
  /** Whether new projects are placed in other cells. */
  isDraining: boolean;
}

/** `publish-only` may publish, enqueue and send batches; `read-only` may read everything except signing keys. */
export const TOKEN_SCOPES = ['full', 'publish-only', 'read-only'] as const;

export type TokenScope = (typeof TOKEN_SCOPES)[number];

export interface Token {
  /** SHA-256 of the whole token, base64url. The token itself is never stored. */
  tokenHash: string;
  projectId: ProjectId;
  scope: TokenScope;
  /** The name that the owner gave to the token. */
  name?: string;
  createdAtMs: Millis;
  /** When the token was last used, exact to about an hour; absent: never. */
  lastUsedAtMs?: Millis;
}

/** A change that is made with a full token of the project. The transaction fails if the token was revoked. */
export interface InProjectByToken extends InProject {
  /** The hash of the token. */
  by: string;
}

/** Projects, tokens and keys, read in one snapshot. */
export interface AccountsState {
  /** Grows with each change of a project, token or key, except the last use of a token. */
  version: number;
  projects: (Project & { signingKeys: SealedKeys; cellId: CellId })[];
  tokens: Token[];
  /** The cells of the installation. Empty while there is only one cell. */
  cells: Cell[];
}

/**
 * The phase of a move. `cancelled`: the copied rows are being removed. `switched`: the project belongs to the new cell.
 */
export type MovePhase = 'copying' | 'paused' | 'switched' | 'cancelled';

/** The move of a project from one cell to another. */
export interface ProjectMove extends InProject {
  fromCell: CellId;
  toCell: CellId;
  phase: MovePhase;
  startedAtMs: Millis;
  /** Identifies the command that moves the project. */
  mover: string;
  /** When the command that moves the project was last known to be running. */
  renewedAtMs: Millis;
}

/** Arguments of a change of a move. The change has no effect if another command now carries out the move. */
export interface MoveChange extends InProject {
  mover: string;
}

/** Signing keys as stored: encrypted with the configured encryption key, and opaque to the store. */
export interface SealedKeys {
  current: string;
  next: string;
}
