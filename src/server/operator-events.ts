/** Configures operator events from the settings: kinds, thresholds, project and watched disk. */

import { statfs } from 'node:fs/promises';
import { dirname } from 'node:path';
import { mintSigningKeys, sealKeys } from '../accounts/accounts.ts';
import { databaseOf, messageOf } from '../admin/open-store.ts';
import { DEVELOPMENT_ACCOUNTS } from '../config/development.ts';
import { parseThresholds } from '../config/operator-event-settings.ts';
import type { Config } from '../config/table.ts';
import { AddressGuard, type AddressPolicy } from '../delivery/addresses/address-guard.ts';
import { checkDestination } from '../delivery/addresses/destination-check.ts';
import { FIRST_CELL } from '../engine/model.ts';
import type { OperatorEventsOptions } from '../engine/operator-events/model.ts';
import { isName } from '../protocol/names.ts';
import { CannotStart } from '../system/cannot-start.ts';
import type { WorkerContext } from './context.ts';

type EventsContext = Pick<WorkerContext, 'config' | 'store' | 'sealer' | 'credentials' | 'addresses' | 'clock'>;

/**
 * Creates the project of the events if the project is missing. Resolves to undefined if events are disabled. Throws
 * `CannotStart`.
 */
export async function openOperatorEvents(
  context: EventsContext,
): Promise<Omit<OperatorEventsOptions, 'projectName'> | undefined> {
  const { config, addresses } = context;
  const thresholds = thresholdsOf(config);
  if (!thresholds) return undefined;
  checkUrl(config.operatorEventsUrl, addresses);
  const database = databaseOf(config);
  const isOnDisk = database.kind === 'sqlite' && !config.memory;
  return {
    thresholds,
    url: config.operatorEventsUrl,
    projectId: await ensureProject(context),
    quietMs: config.operatorEventsQuietMs,
    storage: {
      bytesMax: config.operatorEventsStoreBytesMax,
      freeBytesMin: config.operatorEventsFreeBytesMin,
      ...(isOnDisk && { readFreeBytes: () => readFreeBytes(dirname(database.path)) }),
    },
  };
}

/** The thresholds of the enabled kinds. Undefined if operator events are disabled. Throws `CannotStart`. */
export function thresholdsOf(config: Config): OperatorEventsOptions['thresholds'] | undefined {
  if (config.operatorEventsUrl === '') return undefined;
  try {
    return parseThresholds(config.operatorEvents);
  } catch (error) {
    throw new CannotStart(`WAYPOST_OPERATOR_EVENTS: ${messageOf(error)}`, { cause: error });
  }
}

/** Checks the URL at the start; attempts check the address again. Errors omit the URL, which may contain a secret. */
function checkUrl(url: string, addresses: AddressPolicy): void {
  if (!URL.canParse(url)) throw new CannotStart('WAYPOST_OPERATOR_EVENTS_URL: cannot be read');
  const verdict = checkDestination(new URL(url), new AddressGuard(addresses));
  if (verdict.kind === 'blocked') {
    throw new CannotStart(`WAYPOST_OPERATOR_EVENTS_URL: ${verdict.reason} (${verdict.remedy})`);
  }
}

/**
 * Creates the operator's own project. Only this project has the keys that sign operator events, so no user of another
 * project can forge an event.
 */
async function ensureProject({ config, store, sealer, credentials, clock }: EventsContext): Promise<number> {
  const isDevelopment = credentials === 'development';
  const [developer] = DEVELOPMENT_ACCOUNTS;
  const name = isDevelopment ? developer.name : config.operatorEventsProject;
  if (!isName(name)) throw new CannotStart('WAYPOST_OPERATOR_EVENTS_PROJECT: this cannot be the name of a project');
  const keys = isDevelopment ? developer.signingKeys : mintSigningKeys(sealer.randomBytes);
  // The project is in the first cell, since only the first cell is always open when a worker starts.
  const project = { name, signingKeys: sealKeys(keys, sealer), nowMs: clock.wallMs(), cellId: FIRST_CELL };
  return (await store.projects.ensureProject(project)).projectId;
}

async function readFreeBytes(folder: string): Promise<number> {
  const { bavail, bsize } = await statfs(folder);
  return bavail * bsize;
}
