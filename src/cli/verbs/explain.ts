/** `waypost explain`: says why a message or run waits, or how it ended. */
import { CommandFailed, EXIT } from '../command.ts';
import { type Call, commandOf, show } from '../http/verb.ts';
import { plain } from '../plain.ts';

interface Explanation {
  explanation: string;
  /** Absent in an installation with one cell. */
  cell?: string;
}

/** Tries the kinds of ids, the most likely first. */
async function explained(call: Call): Promise<Explanation> {
  const [id = ''] = call.words;
  const of = async (operationId: string, word: string) =>
    call.server.ask<Explanation>(operationId, { words: [word] }).catch((error: unknown) => {
      if (error instanceof CommandFailed && error.exitCode === EXIT.notFound) return undefined;
      throw error;
    });
  const own = id.startsWith('msg_') ? await of('explainMessage', id) : await of('explainWorkflowRun', id);
  if (own) return own;
  const dead = (await of('getDlqMessage', id)) as { messageId?: string; workflowRunId?: string } | undefined;
  const found =
    dead?.workflowRunId === undefined
      ? await of('explainMessage', dead?.messageId ?? id)
      : await of('explainWorkflowRun', dead.workflowRunId);
  if (found) return found;
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
      const found = await explained(call);
      const { explanation, cell } = found;
      return show(call, found, plain(cell === undefined ? explanation : `${explanation} In the cell "${cell}".`));
    },
  },
});
