/** What does an operator do with projects and tokens? The same whether a server runs on the store or not. */
import type { SigningKeys } from '../../api/accounts.ts';
import type { Millis } from '../../engine/model.ts';
import type { TokenScope } from '../../engine/stores.ts';

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
  /** What its owner calls it. */
  name?: string;
  createdAtMs: Millis;
  /** To the hour or so; absent: never. */
  lastUsedAtMs?: Millis;
}

export interface CreatedToken extends TokenEntry {
  /** Kept nowhere: whoever loses it makes another. */
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
  /** Once it resolves, the token lets nobody in any more. */
  revokeToken(request: { id: string }): Promise<TokenEntry>;
}

/** What was asked for cannot be: a wrong name, an unknown id. The message is one line for the operator. */
export class Refused extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'Refused';
  }
}
