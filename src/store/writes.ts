/** What is written as part of a batch (`batch.ts`). All of it is plain data. */
import type { AcceptAnswer, AcceptArgs } from './sql/accept.ts';
import { cancel } from './sql/cancel.ts';
import { claim } from './sql/claim.ts';
import { deleteDead, reviveDead } from './sql/dead.ts';
import { pinKey, resetKeyRate, setKeyPaused, unpinKey } from './sql/lanes/flow-commands.ts';
import { deleteQueue, emptyQueue, saveQueue, setQueuePaused } from './sql/lanes/queue-commands.ts';
import type { WriteContext } from './sql/log-writer.ts';
import { addToken, ensureProject, noteTokenUse, removeToken, replaceSigningKeys } from './sql/projects.ts';
import { release, releaseAll } from './sql/release.ts';
import { dropExpired } from './sql/retention.ts';
import { deleteDeadRuns } from './sql/runs/dead-runs.ts';
import type { EndRunsAnswer, EndRunsArgs } from './sql/runs/end.ts';
import { cancelFailureCallback, repeatFailureCallback } from './sql/runs/failure-callbacks.ts';
import { reviveRun } from './sql/runs/revive.ts';
import { changeSchedules, deleteSchedule, saveSchedule } from './sql/schedules.ts';
import type { SettleAnswer, SettleArgs } from './sql/settle.ts';
import { addEndpoints, deleteUrlGroup, removeEndpoints, setGroupHeaders } from './sql/url-groups.ts';
import { saveMail } from './sql/waiters/mail.ts';
import { addWaiter } from './sql/waiters/register.ts';
import { resolveWaiters } from './sql/waiters/waiters.ts';
import { beat, dismissLate, leave, workersBehind } from './sql/workers.ts';

/** Commands that run one after the other. `accept`, `settle` and `endRuns` are merged instead. */
const SINGLE = {
  claim,
  release,
  releaseAll,
  cancel,
  reserveNumbers: async ({ tx, reserved }: WriteContext, args: { count: number }): Promise<number> =>
    reserved.get(args) ?? (await tx.reserve('keys and tokens', args.count)),
  deleteDead,
  reviveDead,
  deleteDeadRuns,
  reviveRun,
  repeatFailureCallback,
  cancelFailureCallback,
  ensureProject,
  addToken,
  removeToken,
  noteTokenUse,
  replaceSigningKeys,
  addEndpoints,
  removeEndpoints,
  setGroupHeaders,
  deleteUrlGroup,
  saveSchedule,
  changeSchedules,
  deleteSchedule,
  addWaiter,
  resolveWaiters,
  saveMail,
  saveQueue,
  setQueuePaused,
  deleteQueue,
  emptyQueue,
  setKeyPaused,
  pinKey,
  unpinKey,
  resetKeyRate,
  dropExpired,
  beat,
  workersBehind,
  dismissLate,
  leave,
  ping: async (_context: WriteContext, _args: Record<never, never>): Promise<null> => null,
};

type Single = typeof SINGLE;

/** What each command is given and answers. All of it is plain data that can pass to another thread. */
export type Writes = {
  accept: { args: AcceptArgs; answer: AcceptAnswer };
  settle: { args: SettleArgs; answer: SettleAnswer };
  endRuns: { args: EndRunsArgs; answer: EndRunsAnswer };
} & { [M in keyof Single]: { args: Parameters<Single[M]>[1]; answer: Awaited<ReturnType<Single[M]>> } };

export type WriteMethod = keyof Writes;

export type WriteCommand = { [M in WriteMethod]: { method: M; args: Writes[M]['args'] } }[WriteMethod];

/** Carries out one that is not merged with others. */
export function runSingle<M extends keyof Single>(
  context: WriteContext,
  command: { method: M; args: Writes[M]['args'] },
): Promise<Writes[M]['answer']> {
  // TypeScript cannot see that the method and its arguments belong together once they are looked up by name.
  const method = SINGLE[command.method] as (context: WriteContext, args: unknown) => Promise<Writes[M]['answer']>;
  return method(context, command.args);
}
