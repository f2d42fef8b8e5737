/** `waypost explain`: says why a message or run waits, or how it ended. */
import { CommandFailed, EXIT } from '../command.ts';
import { type Call, commandOf, show } from '../http/verb.ts';
import { plain } from '../plain.ts';

interface Explanation {
  explanation: string;
  /** Absent in an installation with one cell. */
  cell?: string;
}

/** Looks up the id as a message id or a run id, then as a DLQ id. */
async function findExplanation(call: Call): Promise<Explanation> {
  const [id = ''] = call.words;
  const explanationOf = async (operationId: string, word: string) =>
    call.server.ask<Explanation>(operationId, { words: [word] }).catch((error: unknown) => {
      if (error instanceof CommandFailed && error.exitCode === EXIT.notFound) return undefined;
      throw error;
    });
  const found = id.startsWith('msg_')
    ? await explanationOf('explainMessage', id)
    : await explanationOf('explainWorkflowRun', id);
  if (found) return found;
  const dead = (await explanationOf('getDlqMessage', id)) as { messageId?: string; workflowRunId?: string } | undefined;
  const deadExplanation =
    dead?.workflowRunId === undefined
      ? await explanationOf('explainMessage', dead?.messageId ?? id)
      : await explanationOf('explainWorkflowRun', dead.workflowRunId);
  if (deadExplanation) return deadExplanation;
  throw new CommandFailed(
    `${JSON.stringify(id)} is unknown at ${call.server.url}: it belongs to another server or project, or its logs have expired`,
    EXIT.notFound,
  );
}

export const explain = commandOf('explain', {
  '': {
    words: '<id>',
    meaning:
      'Says why a message or a workflow run waits, or how it ended. The id is that of a message, a run or a DLQ entry.',
    example: 'explain msg_42',
    async run(call) {
      const found = await findExplanation(call);
      const { explanation, cell } = found;
      return show(call, found, plain(cell === undefined ? explanation : `${explanation} In the cell "${cell}".`));
    },
  },
});
