/** `waypost explain`: why something waits, or what became of it, in the server's own words. */
import { CommandFailed, EXIT } from '../command.ts';
import { type Call, commandOf, show } from '../http/verb.ts';
import { plain } from '../plain.ts';

interface Explained {
  explanation: string;
  /** Absent while there is only one. */
  cell?: string;
}

/** By what an id can name, the most likely first. */
async function explained(call: Call): Promise<Explained> {
  const [id = ''] = call.words;
  const of = async (operationId: string, word: string) =>
    call.server.ask<Explained>(operationId, { words: [word] }).catch((error: unknown) => {
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
    `nothing is known of ${JSON.stringify(id)} at ${call.server.url}: it is of another server or project, or older than the logs are kept`,
    EXIT.notFound,
  );
}

export const explain = commandOf('explain', {
  '': {
    words: '<id>',
    meaning:
      'Says why a message or a workflow run waits, or what became of it. The id may be that of a message, of a run, or of an entry in the DLQ.',
    example: 'explain msg_42',
    async run(call) {
      const answer = await explained(call);
      const { explanation, cell } = answer;
      return show(call, answer, plain(cell === undefined ? explanation : `${explanation} In the cell "${cell}".`));
    },
  },
});
