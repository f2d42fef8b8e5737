/** What `waypost init` does: it makes an encryption key, a project and a token for it. */
import { orTellOfKey } from '../accounts/open-accounts.ts';
import type { SigningKeys } from '../api/accounts.ts';
import type { Config } from '../config/table.ts';
import type { TokenScope } from '../engine/accounts/store.ts';
import { CannotStart } from '../system/cannot-start.ts';
import { createSystemRandomness, systemClock } from '../system/system.ts';
import { emptiestCell } from './measure-cells.ts';
import { ensureSealer, openStore } from './open-store.ts';
import { Refused } from './socket/commands.ts';
import { StoredAdministration } from './socket/stored.ts';

export interface Initialised {
  /** Stored nowhere: a lost token cannot be shown again, only replaced by a new one. */
  token: string;
  signingKeys: SigningKeys;
}

/** Throws `CannotStart` when the project has a token and `addToken` does not ask for another. */
export async function initialise(
  config: Config,
  { project: name, addToken, scope }: { project: string; addToken: boolean; scope: TokenScope },
): Promise<Initialised> {
  const randomness = createSystemRandomness();
  let failure: Error | undefined;
  const onFatal = (error: Error) => {
    failure = error;
  };
  const store = await openStore(config, { onFatal, create: true, isInline: true });
  try {
    const sealer = await ensureSealer(config, randomness, store);
    const administration = new StoredAdministration({
      ...{ store, clock: systemClock, randomness, sealer: () => sealer },
      chooseCell: () => emptiestCell(config, store, sealer),
    });
    const { signingKeys } = await orTellOfKey(config.dataDir, () => administration.ensureProject(name));
    const tokens = await administration.listTokens({ project: name });
    if (tokens.length > 0 && !addToken) {
      throw new CannotStart(`the project "${name}" has a token already; --add-token makes one more`);
    }
    const { token } = await administration.createToken({ project: name, scope });
    return { token, signingKeys };
  } catch (error) {
    if (error instanceof Refused) throw new CannotStart(error.message, { cause: error });
    throw failure ?? error;
  } finally {
    await store.close();
  }
}
