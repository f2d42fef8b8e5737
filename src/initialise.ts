/** What `waypost init` does: an encryption key, a project, a token of its own. */
import { mintSigningKeys, sealKeys, unsealKeys } from './accounts.ts';
import type { SigningKeys } from './api/accounts.ts';
import { DEVELOPMENT_ACCOUNTS } from './config/development.ts';
import type { Config } from './config/table.ts';
import type { TokenScope } from './engine/stores.ts';
import { CannotStart, openSealer, openStore } from './open-store.ts';
import { isName } from './protocol/names.ts';
import { hashToken, mintToken } from './protocol/token.ts';
import { createSystemRandomness, systemClock } from './system.ts';

/** 256 bits: nobody guesses it, so its plain hash can be kept. */
const TOKEN_SECRET_BYTES = 32;

export interface Initialised {
  /** Kept nowhere: whoever loses it makes another. */
  token: string;
  signingKeys: SigningKeys;
}

/** Throws `CannotStart` when the project has a token and `addToken` does not ask for another. */
export async function initialise(
  config: Config,
  { project: name, addToken, scope }: { project: string; addToken: boolean; scope: TokenScope },
): Promise<Initialised> {
  if (!isName(name))
    throw new CannotStart(`"${name}" cannot be a project's name: letters, digits, "-", "_" and "." can`);
  if (DEVELOPMENT_ACCOUNTS.some((account) => account.name === name)) {
    throw new CannotStart(`"${name}" is the name of a development account: take another`);
  }
  const randomness = createSystemRandomness();
  let failure: Error | undefined;
  const onFatal = (error: Error) => {
    failure = error;
  };
  const store = await openStore(config, { onFatal, create: true });
  try {
    const sealer = openSealer(config, randomness, { create: true });
    const nowMs = systemClock.nowMs();
    const minted = sealKeys(mintSigningKeys(sealer.randomBytes), sealer);
    const { projectId } = await store.ensureProject(name, minted, nowMs);
    const hasToken = (await store.listTokens()).some((token) => token.projectId === projectId);
    if (hasToken && !addToken) {
      throw new CannotStart(`the project "${name}" has a token already; --add-token makes one more`);
    }
    const signingKeys = unsealKeys(await store.signingKeys(projectId), sealer);
    const secret = Buffer.from(randomness.bytes(TOKEN_SECRET_BYTES)).toString('base64url');
    const token = mintToken(name, secret);
    await store.addToken(projectId, hashToken(token), scope, nowMs);
    return { token, signingKeys };
  } catch (error) {
    throw failure ?? error;
  } finally {
    await store.close();
  }
}
