/** `waypost status`: shows the server, the project of the token, and the number of unfinished and dead messages. */
import { columns, timeOf } from '../columns.ts';
import { CommandFailed, EXIT } from '../command.ts';
import type { Server } from '../http/server.ts';
import { commandOf, show } from '../http/verb.ts';
import { plain } from '../plain.ts';

interface Count {
  count: number;
  isAtLeast: boolean;
}

interface Overview {
  unfinished: Count;
  waiting: Count;
  active: number;
  held: Count;
  oldestDue?: number;
  dlq: { messages: Count; workflowRuns: Count };
}

export const status = commandOf('status', {
  '': {
    meaning:
      'Shows which server responds and whether it is ready, the project of the token, and how many messages and runs are unfinished, held or in the DLQ.',
    example: 'status',
    async run(call) {
      const { server } = call;
      const [notReady, session, overview] = await Promise.all([
        readinessProblem(server),
        server.ask<{ project: string; scope: string }>('getSession'),
        server.ask<Overview>('getOverview'),
      ]);
      const { unfinished, waiting, active, held, oldestDue, dlq } = overview;
      const rows = [
        ['server', server.title],
        ['project', `${plain(session.project)}, with a ${session.scope} token`],
        ['ready', notReady === undefined ? 'yes' : `no: ${notReady}`],
        [
          'unfinished',
          `${countText(unfinished)}: ${countText(waiting)} waiting, ${active} active, ${countText(held)} held`,
        ],
        ['oldest due', oldestDue === undefined ? '-' : timeOf(oldestDue)],
        ['DLQ', `${countText(dlq.messages)} messages, ${countText(dlq.workflowRuns)} workflow runs`],
      ];
      return show(
        call,
        { server: server.url, isReady: notReady === undefined, ...session, ...overview },
        columns(rows).trimEnd(),
      );
    },
  },
});

/** Returns the reason from `/readyz` why the server is not ready, or `undefined` if the server is ready. */
async function readinessProblem(server: Server): Promise<string | undefined> {
  try {
    await server.ask('getReadiness');
    return undefined;
  } catch (error) {
    if (error instanceof CommandFailed && error.exitCode === EXIT.unavailable) return error.message;
    throw error;
  }
}

function countText({ count, isAtLeast }: Count): string {
  return isAtLeast ? `at least ${count}` : String(count);
}
