/** `waypost status`: which server answers, to whom, and how it stands. */
import { columns, timeOf } from '../columns.ts';
import { CommandFailed, EXIT } from '../command.ts';
import type { Server } from '../http/server.ts';
import { commandOf, show } from '../http/verb.ts';
import { plain } from '../plain.ts';

interface Counted {
  count: number;
  isAtLeast: boolean;
}

interface Overview {
  unfinished: Counted;
  waiting: Counted;
  active: number;
  held: Counted;
  oldestDue?: number;
  dlq: { messages: Counted; workflowRuns: Counted };
}

export const status = commandOf('status', {
  '': {
    meaning:
      'Says which server answers and whether it is ready, whose token it is, and how much waits, is held back and has failed.',
    example: 'status',
    async run(call) {
      const { server } = call;
      const [notReady, session, overview] = await Promise.all([
        whyNotReady(server),
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
          `${counted(unfinished)}: ${counted(waiting)} waiting, ${active} active, ${counted(held)} held back`,
        ],
        ['oldest due', oldestDue === undefined ? '-' : timeOf(oldestDue)],
        ['DLQ', `${counted(dlq.messages)} messages, ${counted(dlq.workflowRuns)} workflow runs`],
      ];
      return show(
        call,
        { server: server.url, isReady: notReady === undefined, ...session, ...overview },
        columns(rows).trimEnd(),
      );
    },
  },
});

/** What `/readyz` says; `undefined`: it is ready. */
async function whyNotReady(server: Server): Promise<string | undefined> {
  try {
    await server.ask('getReadiness');
    return undefined;
  } catch (error) {
    if (error instanceof CommandFailed && error.exitCode === EXIT.unavailable) return error.message;
    throw error;
  }
}

function counted({ count, isAtLeast }: Counted): string {
  return isAtLeast ? `at least ${count}` : String(count);
}
