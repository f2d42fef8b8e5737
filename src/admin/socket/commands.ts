/** The interface of the operator's commands on projects and tokens, the same with and without a running server. */
import type { SigningKeys } from '../../api/accounts.ts';
import type { TokenScope } from '../../engine/accounts/store.ts';
import type { Millis } from '../../engine/model.ts';

export interface ProjectEntry {
  name: string;
  createdAtMs: Millis;
  /** The number of the project's tokens. */
  tokens: number;
}

export interface CreatedProject {
  name: string;
  signingKeys: SigningKeys;
}

export interface TokenEntry {
  id: string;
  project: string;
  scope: TokenScope;
  /** The optional name that was given at the creation of the token. */
  name?: string;
  createdAtMs: Millis;
  /** Accurate to about an hour. Absent if the token was never used. */
  lastUsedAtMs?: Millis;
}

export interface CreatedToken extends TokenEntry {
  /** The token itself is not stored: a lost token cannot be shown again, only replaced by a new token. */
  token: string;
}

export interface CreateTokenRequest {
  project: string;
  scope: TokenScope;
  name?: string;
}

/** A method that throws `CommandRefused`, with a message for the operator, has changed nothing. */
export interface Administration {
  listProjects(): Promise<ProjectEntry[]>;
  createProject(request: { name: string }): Promise<CreatedProject>;
  /** The tokens of one project, or of all projects. */
  listTokens(request: { project?: string }): Promise<TokenEntry[]>;
  createToken(request: CreateTokenRequest): Promise<CreatedToken>;
  /** When this resolves, all workers reject the token. */
  revokeToken(request: { id: string }): Promise<TokenEntry>;
}

/** The command is not possible, for example because of an invalid name or an unknown id. The message is one line. */
export class CommandRefused extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'CommandRefused';
  }
}
