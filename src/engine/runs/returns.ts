/** What follows when the endpoint answers a call with the result of its run (contract K 5.1)? */
import type { ReturnedRun, Settling } from '../messages/decide.ts';
import type { Claimed } from '../model.ts';
import { endingOf } from './endings.ts';
import type { RunStore } from './stores.ts';

/**
 * The same decision with the end of the run in it; without it when the run is over already. Call it again when the store
 * answers that the run has changed meanwhile. Throws `StoreUnavailable`.
 */
export async function returnRun(
  store: { runs: Pick<RunStore, 'findRun' | 'findRecords'> },
  { message }: Claimed,
  decision: Settling & { returns: ReturnedRun },
): Promise<Settling> {
  const { settlement, returns } = decision;
  const { response, atMs } = returns;
  const part = message.settings.run;
  const run = returns.run ?? (part && (await store.runs.findRun(message.projectId, part.key)));
  delete returns.run; // it is read the next time
  if (run?.state !== 'RUN_STARTED') return { kind: 'settle', settlement, follows: [] };
  const { ending, follows } = await endingOf(store, run, {
    state: 'RUN_SUCCESS',
    atMs,
    ...(response.length > 0 && { response }),
  });
  return {
    kind: 'settle',
    settlement: { ...settlement, change: { ...settlement.change, ending } },
    follows,
    succeeds: run,
  };
}
