/** `waypost init`: creates an encryption key, a project and a token for the project. */

import { explainWrongKey } from '../accounts/open-accounts.ts';
import type { SigningKeys } from '../api/accounts.ts';
import { isDevelopmentProject } from '../config/development.ts';
import type { Config } from '../config/table.ts';
import type { TokenScope } from '../engine/accounts/store.ts';
import type { Store } from '../store/store.ts';
import { CannotStart } from '../system/cannot-start.ts';
import { createSystemRandomness, systemClock } from '../system/system.ts';
import { administrationOn } from './administer.ts';
import { databaseOf, ensureSealer, openStore } from './open-store.ts';
import { CommandRefused } from './socket/commands.ts';

export interface InitResult {
  /** The token itself is not stored: a lost token cannot be shown again, only replaced by a new token. */
  token: string;
  signingKeys: SigningKeys;
}

/**
 * Throws `CannotStart` when the project has a token and `addToken` is not set, or when the store belongs to `waypost dev`
 * and has unfinished messages or schedules.
 */
export async function initialise(
  config: Config,
  { project: name, addToken, scope }: { project: string; addToken: boolean; scope: TokenScope },
): Promise<InitResult> {
  const randomness = createSystemRandomness();
  let failure: Error | undefined;
  const onFatal = (error: Error) => {
    failure = error;
  };
  const store = await openStore(config, { onFatal, create: true, isInline: true });
  try {
    await checkNotDevelopment(config, store);
    const sealer = await ensureSealer(config, randomness, store);
    const administration = administrationOn(config, store, () => sealer);
    const { signingKeys } = await explainWrongKey(config.dataDir, () => administration.ensureProject(name));
    const tokens = await administration.listTokens({ project: name });
    if (tokens.length > 0 && !addToken) {
      throw new CannotStart(`the project "${name}" has a token already; --add-token creates another one`);
    }
    const { token } = await administration.createToken({ project: name, scope });
    return { token, signingKeys };
  } catch (error) {
    if (error instanceof CommandRefused) throw new CannotStart(error.message, { cause: error });
    throw failure ?? error;
  } finally {
    await store.close();
  }
}

/**
 * In production, the tokens of development projects are invalid, so nobody could stop the projects' messages and
 * schedules.
 */
async function checkNotDevelopment(config: Config, store: Store): Promise<void> {
  const projects = await store.projects.listProjects();
  if (!projects.every(({ name }) => isDevelopmentProject(name))) return;
  for (const { projectId } of projects) {
    const schedules = await store.schedules.listSchedules({ projectId });
    const nowMs = systemClock.wallMs();
    const messages = await store.messages.listUnfinished({ projectId, filter: {}, page: { count: 1 }, nowMs });
    if (schedules.length + messages.items.length === 0) continue;
    const place = databaseOf(config).kind === 'sqlite' ? 'folder' : 'database';
    const another = place === 'folder' ? '--data-dir' : 'DATABASE_URL';
    throw new CannotStart(
      `this ${place} has messages or schedules of "waypost dev", which would continue: choose another ${another}`,
    );
  }
}
