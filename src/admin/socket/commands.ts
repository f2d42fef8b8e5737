/** The operator's commands on projects and tokens, the same with and without a running server. */
import type { SigningKeys } from '../../api/accounts.ts';
import type { TokenScope } from '../../engine/accounts/store.ts';
import type { Millis } from '../../engine/model.ts';

export interface ProjectEntry {
  name: string;
  createdAtMs: Millis;
  /** How many tokens it has. */
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
  /** The name that its owner gave it. */
  name?: string;
  createdAtMs: Millis;
  /** Exact to about an hour; absent: never. */
  lastUsedAtMs?: Millis;
}

export interface CreatedToken extends TokenEntry {
  /** Stored nowhere: a lost token cannot be shown again, only replaced by a new one. */
  token: string;
}

export interface CreateTokenRequest {
  project: string;
  scope: TokenScope;
  name?: string;
}

/** Every method throws `Refused` with a sentence for the operator, having changed nothing. */
export interface Administration {
  listProjects(): Promise<ProjectEntry[]>;
  createProject(request: { name: string }): Promise<CreatedProject>;
  /** Of one project, or of all. */
  listTokens(request: { project?: string }): Promise<TokenEntry[]>;
  createToken(request: CreateTokenRequest): Promise<CreatedToken>;
  /** Once it resolves, the token is rejected everywhere. */
  revokeToken(request: { id: string }): Promise<TokenEntry>;
}

/** The operator asked for something impossible, such as a wrong name or an unknown id. The message is one line. */
export class Refused extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'Refused';
  }
}
