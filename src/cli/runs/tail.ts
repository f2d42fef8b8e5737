/** `waypost runs tail`: shows what happens to one run until it ends. */
import { CommandFailed, EXIT } from '../command.ts';
import { followLog, type LiveEntry } from '../http/live.ts';
import type { Verb } from '../http/verb.ts';
import { plainJson } from '../plain.ts';
import { headOf, stepLinesOf } from './timeline.ts';
import { BODY_LENGTH_MAX, type RunView } from './view.ts';

const ENDS: Readonly<Record<string, number>> = {
  RUN_SUCCESS: EXIT.ok,
  RUN_FAILED: EXIT.failed,
  RUN_CANCELED: EXIT.canceled,
};

export const tail: Verb = {
  words: '<run id>',
  meaning: `Prints each step of a run as something happens to it, and in the end what came of the run. Ends with ${EXIT.ok} when it succeeded, ${EXIT.failed} when it failed, ${EXIT.canceled} when it was cancelled. Of several runs with the id the latest one.`,
  example: 'runs tail wfr_order-42',
  async run(call) {
    const { words, server, terminal, isJson } = call;
    const [id = ''] = words;
    const query = new URLSearchParams({ workflowRunId: id, count: '1', trimBody: String(BODY_LENGTH_MAX) });
    if (isJson) query.delete('trimBody');
    const told = new Set<string>();
    // The log says only that something happened; what it came to is read.
    for await (const entries of followLog<LiveEntry>(call)) {
      if (entries.length > 0 && !entries.some(({ workflowRunId }) => workflowRunId === id)) continue;
      const { runs } = await server.ask<{ runs: RunView[] }>('listWorkflowRuns', { query });
      const [run] = runs;
      if (!run)
        throw new CommandFailed(`there is no run ${JSON.stringify(id)}, or nothing of it is kept`, EXIT.notFound);
      const end = ENDS[run.workflowState];
      const { steps, ...ofRun } = run;
      const lines = isJson
        ? steps.flatMap((group) => group.steps).map((step) => plainJson(step))
        : stepLinesOf(run, terminal.color);
      if (end !== undefined)
        lines.push(...(isJson ? [plainJson(ofRun)] : headOf(run, { nowMs: Date.now(), color: terminal.color })));
      terminal.print(
        lines
          .filter((line) => isNew(line, told))
          .map((line) => `${line}\n`)
          .join(''),
      );
      if (end !== undefined) return end;
    }
    return EXIT.unavailable; // never: whoever follows goes on until it throws
  },
};

/** Lines of other steps make columns wider. */
function isNew(line: string, told: Set<string>): boolean {
  const text = line.replace(/ +/g, ' ');
  const isFirst = !told.has(text);
  told.add(text);
  return isFirst;
}
