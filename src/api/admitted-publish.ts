/**
 * Publishes for a caller whose token is valid at the moment of the commit, even if another worker changed the accounts.
 */
import type { Engine } from '../engine/commands.ts';
import type { PublishCommand, PublishOutcome } from '../engine/messages/publish-command.ts';
import { AccountsChanged, StoreUnavailable } from '../engine/store-errors.ts';
import type { Call } from './route.ts';

/** When accounts change more often than this during one request, the request is refused. */
const TRIES_MAX = 5;

/** Throws as `Engine.publish`, and `ApiError` 401 or 403 when the caller is not admitted any more. */
export function publishFor(engine: Engine, call: Call, commands: PublishCommand[]): Promise<PublishOutcome[]> {
  const { projectId, accountsVersion } = call;
  // Without a version no other worker can change the accounts.
  return accountsVersion === undefined
    ? engine.publish(projectId, commands)
    : publishAt(accountsVersion, engine, call, commands);
}

async function publishAt(
  accountsVersion: number,
  engine: Engine,
  { projectId, readmit }: Call,
  commands: PublishCommand[],
): Promise<PublishOutcome[]> {
  let version = accountsVersion;
  for (let tries = 1; tries <= TRIES_MAX; tries += 1) {
    try {
      return await engine.publish(projectId, commands, version);
    } catch (error) {
      if (!(error instanceof AccountsChanged)) throw error;
      version = await readmit();
    }
  }
  throw new StoreUnavailable('tokens or signing keys change too often, try again shortly');
}
