/**
 * Saves a checkpoint: the outcomes of its delivered messages together with the new entries of the run's journal, provided
 * that the call still owns each of the delivered messages (P6, P8).
 */
import type { Checkpoint, Millis } from '../../../engine/model.ts';
import type { Checkpointed } from '../../../engine/stores.ts';
import type { WriteContext } from '../logs/log-writer.ts';
import { merged } from '../operation.ts';
import { Journals } from '../runs/journals.ts';
import { insertMessages } from './accept.ts';
import { DayBudgets } from './message-counts.ts';
import {
  encodeNewMessage,
  encodeSettlement,
  projectOf,
  projectsSharedBy,
  type StoredNewMessage,
  type StoredSettlement,
  weightOf,
} from './rows.ts';
import {
  findOwned,
  type OwnedSettlement,
  releaseNextOf,
  type SettleArgs,
  saveSettlements,
  withPermitOf,
} from './settle.ts';

export interface CheckpointArgs {
  /** The outcomes of delivered messages that the call still owns. */
  done: StoredSettlement[];
  follows: StoredNewMessage[];
  nowMs: number;
}

/** A checkpoint whose call owns all messages that it settles. */
interface OwnedCheckpoint {
  args: CheckpointArgs;
  done: readonly OwnedSettlement[];
  /** The messages to save, with the queue permit of the delivered messages. */
  follows: StoredNewMessage[];
}

/** Settles all of `done` and saves `follows` in the journal of their run, or does nothing and returns a reason. */
export const checkpoint = merged(
  {
    weight: ({ done, follows }) => {
      const { rows, bytes } = weightOf(follows);
      return { rows: done.length + rows, bytes };
    },
    touches: ({ done, follows }, limits) => ({
      messages: done.map(({ key }) => key),
      projects: projectsSharedBy(follows, limits),
      writes: [...done.map(({ projectId }) => projectId), ...follows.map(projectOf)],
    }),
  },
  async (context: WriteContext, commands: readonly CheckpointArgs[]): Promise<Checkpointed[]> => {
    const nowMs = Math.max(...commands.map((command) => command.nowMs));
    const owned = await findOwnedCheckpoints(context, commands);
    const results = new Map<CheckpointArgs, Checkpointed>();
    const all = owned.flatMap(({ follows }) => follows);
    const budgets = await DayBudgets.read(
      context,
      owned.map(({ follows }) => ({ messages: follows })),
    );
    const journals = await Journals.load(context, all, context.limits.journalBytesMax);
    const accepted = owned.filter(({ args, follows }) => {
      const refusal = journals?.refusalOf(follows);
      if (refusal?.kind === 'runChanged' || refusal?.kind === 'journalFull') results.set(args, refusal);
      else if (refusal) results.set(args, { kind: 'runOver' });
      if (refusal) return false;
      const budget = budgets.take(follows);
      if (budget !== 'taken') results.set(args, budget);
      return budget === 'taken';
    });
    const settled = accepted.flatMap(({ done }) => done);
    if (settled.length > 0) await saveSettlements(context, settled);
    const follows = accepted.flatMap((each) => each.follows);
    const saved = follows.length === 0 ? [] : await insertMessages(context, follows, nowMs, journals);
    await releaseNextOf(context, settled, nowMs);
    let next = 0;
    for (const { args, follows } of accepted) {
      results.set(args, { kind: 'saved', follows: saved.slice(next, next + follows.length) });
      next += follows.length;
    }
    return commands.map((command) => results.get(command) ?? { kind: 'stale' });
  },
  ({ done, follows, nowMs }: Checkpoint & { nowMs: Millis }) => ({
    done: done.map(encodeSettlement),
    follows: follows.map(encodeNewMessage),
    nowMs,
  }),
);

/** The commands whose messages all still have their claims. */
async function findOwnedCheckpoints(
  context: WriteContext,
  commands: readonly CheckpointArgs[],
): Promise<readonly OwnedCheckpoint[]> {
  const settlements = new Map(
    commands.map((args) => [args, args.done.map((settlement): SettleArgs => ({ settlement, nowMs: args.nowMs }))]),
  );
  const saved = await findOwned(context, [...settlements.values()].flat());
  return commands.flatMap((args) => {
    const wanted = settlements.get(args) ?? [];
    const done = wanted.flatMap((settlement) => saved.get(settlement) ?? []);
    const [first] = done;
    if (first === undefined || done.length < wanted.length) return [];
    return [{ args, done, follows: args.follows.map((follow) => withPermitOf(first.owner, follow)) }];
  });
}
