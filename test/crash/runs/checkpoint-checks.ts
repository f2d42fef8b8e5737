/**
 * Checks that saved checkpoints are durable, as seen by continuing calls (P8): a saved result is never lost or changed, and no
 * call that starts after the save executes its step again. A call that was stopped executes no more steps.
 */
import type { DiaryLine } from './diary.ts';
import type { LoggedRun } from './run-view.ts';

export interface CheckpointVerdict {
  /** Results whose checkpoint was acknowledged to a call. */
  kept: number;
  /** Calls that the server stopped because their claim had expired. */
  stopped: number;
  /** Repeated executions of a step, after a crash or in a concurrent call. */
  executedAgain: number;
  /** How often the next call of a run was handled by the other library. */
  takeovers: number;
  /** Saved results that the server's log does not have, or has with another value. */
  gone: string[];
  /** Steps executed by a call that started after another call had saved their result. */
  executedInVain: string[];
  /** Steps executed by a stopped handler. */
  executedAfterStop: string[];
}

interface Kept {
  runId: string;
  messageId: string;
  out: string | undefined;
  atLine: number;
  /**
   * Whether the result was saved by the call that executed the step, so that no earlier request can cause another
   * execution.
   */
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
      // The official library may save the result of a `context.call` before the end of the delivery that requested the
      // call.
      const isOwn = executed.get(what)?.has(line.call) === true;
      // A repeated checkpoint has a repeated response.
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
