/** `waypost runs tail`: follows one run until it ends. */
import { CommandFailed, EXIT } from '../command.ts';
import { followLog, type LiveEntry } from '../http/live.ts';
import type { Verb } from '../http/verb.ts';
import { plainJson } from '../plain.ts';
import { headOf, stepLinesOf } from './timeline.ts';
import { BODY_LENGTH_MAX, type RunView } from './view.ts';

const EXIT_BY_STATE: Readonly<Record<string, number>> = {
  RUN_SUCCESS: EXIT.ok,
  RUN_FAILED: EXIT.failed,
  RUN_CANCELED: EXIT.canceled,
};

export const tail: Verb = {
  words: '<run id>',
  meaning: `Follows a run: prints each step whenever it changes, and finally the outcome of the run. Exits with ${EXIT.ok} when it succeeded, ${EXIT.failed} when it failed, ${EXIT.canceled} when it was cancelled. If several runs have the id, it follows the latest.`,
  example: 'runs tail wfr_order-42',
  async run(call) {
    const { words, server, terminal, isJson } = call;
    const [id = ''] = words;
    const query = new URLSearchParams({ workflowRunId: id, count: '1', trimBody: String(BODY_LENGTH_MAX) });
    if (isJson) query.delete('trimBody');
    const printed = new Set<string>();
    // A log entry says only that the run has changed, so the run is read again.
    for await (const entries of followLog<LiveEntry>(call)) {
      if (entries.length > 0 && !entries.some(({ workflowRunId }) => workflowRunId === id)) continue;
      const { runs } = await server.ask<{ runs: RunView[] }>('listWorkflowRuns', { query });
      const [run] = runs;
      if (!run)
        throw new CommandFailed(`there is no run ${JSON.stringify(id)}, or its data has expired`, EXIT.notFound);
      const end = EXIT_BY_STATE[run.workflowState];
      const { steps, ...summary } = run;
      const lines = isJson
        ? steps.flatMap((group) => group.steps).map((step) => plainJson(step))
        : stepLinesOf(run, terminal.color);
      if (end !== undefined)
        lines.push(...(isJson ? [plainJson(summary)] : headOf(run, { nowMs: Date.now(), color: terminal.color })));
      terminal.print(
        lines
          .filter((line) => isNew(line, printed))
          .map((line) => `${line}\n`)
          .join(''),
      );
      if (end !== undefined) return end;
    }
    return EXIT.unavailable; // unreachable: `followLog` ends only by throwing
  },
};

/** Whether the line was not printed before. Ignores the padding of columns, which depends on the lines of other steps. */
function isNew(line: string, printed: Set<string>): boolean {
  const text = line.replace(/ +/g, ' ');
  const isFirst = !printed.has(text);
  printed.add(text);
  return isFirst;
}
