/** Ends a run whose result came in the response to a call (contract K 5.1, 5.7). */
import type { Store } from '../../../store/store.ts';
import type { Run } from '../../../workflow/model.ts';
import { stepTemplateOf } from '../../calls/drafts.ts';
import type { LastStep } from '../../calls/message-outcomes.ts';
import type { ReturnedRun, SettleDecision } from '../../messages/decide.ts';
import { followUpOf } from '../../messages/follow-up.ts';
import type { Intake } from '../../messages/intake.ts';
import type { Claimed, LogEvent, Message, Millis, NewMessage } from '../../model.ts';
import { draftEnding } from './endings.ts';

/**
 * Adds the end of the run to the decision, unless the run has already ended. Call this function again if the store
 * reports that the run has changed. Throws `StoreUnavailable`.
 */
export async function returnRun(
  store: { runs: Pick<Store['runs'], 'findRun' | 'findRecords'> },
  intake: Pick<Intake, 'draftsOf'>,
  { message }: Claimed,
  decision: SettleDecision & { returns: ReturnedRun },
): Promise<SettleDecision> {
  const { settlement, returns } = decision;
  const { response, lastStep, atMs } = returns;
  const runSettings = message.settings.run;
  const run =
    returns.run ?? (runSettings && (await store.runs.findRun({ projectId: message.projectId, key: runSettings.key })));
  delete returns.run; // the next round reads the run again
  if (run?.state !== 'RUN_STARTED') return { kind: 'settle', settlement, follows: [] };
  const { ending, follows } = await draftEnding(store, run, {
    state: 'RUN_SUCCESS',
    atMs,
    ...(response.length > 0 && { response }),
  });
  const change = { ...settlement.change, ending };
  if (lastStep)
    change.lastStep = await draftLastStep(lastStep, { run, previous: message, done: change.events }, intake, atMs);
  return { kind: 'settle', settlement: { ...settlement, change }, follows, succeeds: run };
}

/** The last step in the form in which a checkpoint would have saved it. The end of the run settles the step. */
async function draftLastStep(
  { body, identity }: LastStep,
  { run, previous, done }: { run: Run; previous: Message; done: readonly LogEvent[] },
  intake: Pick<Intake, 'draftsOf'>,
  atMs: Millis,
): Promise<NewMessage> {
  const { header, settings } = stepTemplateOf(run, previous);
  const entry = { ...identity, runKey: run.key };
  const step = followUpOf(previous, { url: run.url, method: 'POST', header, body, settings, entry }, atMs);
  const [draft] = await intake.draftsOf([step]);
  if (!draft) throw new Error('a draft is missing');
  const events: LogEvent[] = [{ atMs, state: 'CREATED' }, { atMs, state: 'ACTIVE' }, ...done];
  return { ...draft, state: { kind: 'due', dueAtMs: atMs }, events };
}
