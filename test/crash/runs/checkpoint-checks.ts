/**
 * Checks that saved checkpoints are durable, as seen by continuing calls (P8): a saved result is never lost or changed, and no
 * call that starts after the save executes its step again. A call that was stopped executes no more steps.
 */
import type { DiaryLine } from './diary.ts';
import type { LoggedRun } from './run-view.ts';

export interface CheckpointVerdict {
  /** Results that calls were told to be kept. */
  kept: number;
  /** Calls that were told to stop, since the server had given them up. */
  stopped: number;
  /** Executions of a step that had been executed before: a crash, or somebody who was quicker. */
  executedAgain: number;
  /** How often the next call of a run was handled by the other library. */
  takeovers: number;
  /** Kept, and the server's log does not have it, or has something else in its place. */
  gone: string[];
  /** Executed by a call that began after the result had been kept by the one that executed it. */
  executedInVain: string[];
  /** Executed by one that had been told to stop. */
  executedAfterStop: string[];
}

interface Kept {
  runId: string;
  messageId: string;
  out: string | undefined;
  atLine: number;
  /** By the call that executed the step: nothing that was sent before can lead to it again. */
  isOwn: boolean;
}

export function judgeCheckpoints(lines: readonly DiaryLine[], runs: readonly LoggedRun[]): CheckpointVerdict {
  const began = new Map<string, number>();
  const latest = new Map<string, string>();
  const kept = new Map<string, Kept>();
  const executed = new Map<string, Set<string>>();
  const stopped = new Set<string>();
  const executedInVain: string[] = [];
  const executedAfterStop: string[] = [];
  let takeovers = 0;
  let executedAgain = 0;
  for (const [atLine, line] of lines.entries()) {
    if (line.kind === 'delivered') {
      began.set(line.call, atLine);
      if (latest.has(line.runId) && latest.get(line.runId) !== line.library) takeovers += 1;
      latest.set(line.runId, line.library);
    } else if (line.kind === 'executed') {
      const what = `'${line.step}' of ${line.runId}`;
      const callsBefore = executed.get(what) ?? new Set();
      if (callsBefore.size > 0) executedAgain += 1;
      executed.set(what, callsBefore.add(line.call));
      if (stopped.has(`${line.call} ${line.hand}`)) executedAfterStop.push(what);
      const known = kept.get(what);
      if (known?.isOwn && known.atLine < (began.get(line.call) ?? 0)) executedInVain.push(what);
    } else if (line.kind === 'kept') {
      const { runId, step, messageId, body } = line;
      const { out } = JSON.parse(body) as { out?: string };
      const what = `'${step}' of ${runId}`;
      // The answer to a call that the official library has sent may be kept before the delivery that sent it is done.
      const isOwn = executed.get(what)?.has(line.call) === true;
      // A checkpoint that was sent again is answered again.
      if (!kept.has(what)) kept.set(what, { runId, messageId, out, atLine, isOwn });
    } else if (line.kind === 'stopped') {
      stopped.add(`${line.call} ${line.hand}`);
    }
  }
  const byId = new Map(runs.map((run) => [run.runId, run]));
  const gone = [...kept].filter(([, { runId, messageId, out }]) => {
    const run = byId.get(runId);
    return !run?.messages.has(messageId) || run.results.get(messageId) !== out;
  });
  return {
    kept: kept.size,
    stopped: stopped.size,
    executedAgain,
    takeovers,
    gone: gone.map(([what]) => what),
    executedInVain,
    executedAfterStop,
  };
}
