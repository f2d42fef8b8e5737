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

/** The first three are the directory's, the others of each cell's own store. */
export interface CellStore {
  /** Ordered by their numbers; empty as long as there is only one. */
  listCells(): Promise<Cell[]>;
  /** Answers the cell of this name if there is one. `firstName`: what the first cell is called, if it was the only one. */
  addCell(args: { name: string; sealedUrl: string; nowMs: Millis; firstName: string }): Promise<Cell>;
  setCellDraining(args: { cellId: CellId; isDraining: boolean }): Promise<void>;
  /** Makes the store, which nobody uses yet, a cell, and answers which one it is: perhaps it was another before. */
  beginCell(args: { cellId: CellId }): Promise<CellId>;
  /** The cell that the store is; undefined: it has never been told. */
  readCellId(): Promise<CellId | undefined>;
  /** Lets projects live there that are new to it. */
  adoptProjects(args: { projects: Project[] }): Promise<void>;
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
  /** When that command last said that it goes on. */
  seenAtMs: Millis;
}

/** Nothing is done for a command whose move another one has taken over. */
export interface InMove extends InProject {
  mover: string;
}

/** What the directory keeps of moves, so that one that was interrupted goes on. */
export interface ProjectMoveStore {
  listMoves(): Promise<ProjectMove[]>;
  findMove(args: InProject): Promise<ProjectMove | undefined>;
  /** Answers the move of the project, which may be another one that has begun before; undefined: it lives elsewhere. */
  beginMove(args: Omit<ProjectMove, 'phase' | 'seenAtMs'>): Promise<ProjectMove | undefined>;
  /**
   * Says that `mover` goes on, and takes over from a command that has said so before `goneBeforeMs` last. False: another
   * command moves the project, or none does.
   */
  keepMove(args: InMove & { nowMs: Millis; goneBeforeMs?: Millis }): Promise<boolean>;
  setMovePhase(args: InMove & { phase: Exclude<MovePhase, 'switched'> }): Promise<void>;
  /** From now on the project lives in the new cell. False: it is not paused by this command, since another one has taken over or cancelled. */
  switchMove(args: InMove): Promise<boolean>;
  /** Forgets a move that is done, or cancelled. */
  endMove(args: InMove): Promise<void>;
}

export interface ProjectStore {
  readAccounts(): Promise<AccountsState>;
  /**
   * Creates the project or finds it by name. `signingKeys` are kept only when it is new. They come sealed. A new one
   * lives in the cell `cellId`; in the one with the fewest, where that is not given.
   */
  ensureProject(args: { name: string; signingKeys: SealedKeys; nowMs: Millis; cellId?: CellId }): Promise<Project>;
  listProjects(): Promise<Project[]>;
  /** Adding one that exists changes nothing. */
  addToken(token: Token): Promise<void>;
  /** By project, then in the order in which they were made. */
  listTokens(): Promise<Token[]>;
  /** Those of one project, in the order in which they were made. */
  listTokensOf(args: InProject): Promise<Token[]>;
  /** False when there is no such token. */
  removeToken(args: { tokenHash: string }): Promise<boolean>;
  /** `revoked`: the token `by` is gone. `tooMany`: the project has `tokensMax` tokens already. */
  makeToken(
    args: InProjectByToken & { token: Omit<Token, 'projectId'>; tokensMax: number },
  ): Promise<'made' | 'revoked' | 'tooMany'>;
  /**
   * Removes a token by its id, and answers its hash. `revoked`: the token `by` is gone. `lastFull`: the project would
   * have no full token left; of several removals at once, the last one gets this.
   */
  revokeToken(
    args: InProjectByToken & { tokenId: string },
  ): Promise<{ tokenHash: string } | 'missing' | 'lastFull' | 'revoked'>;
  noteTokenUse(args: { tokenHash: string; nowMs: Millis }): Promise<void>;
  signingKeys(args: InProject): Promise<SealedKeys>;
  /** Replaces the pair only while it still is `expected`; answers what is in force afterwards. */
  replaceSigningKeys(args: InProject & { expected: SealedKeys; next: SealedKeys }): Promise<SealedKeys>;
}

/** Signing keys as they lie in the store: encrypted by `config`'s encryption key. Opaque to the store. */
export interface SealedKeys {
  current: string;
  next: string;
}
