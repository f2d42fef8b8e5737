/** `waypost status`: which server answers, to whom, and how it stands. */
import { columns, timeOf } from './columns.ts';
import { commandOf, show } from './http/verb.ts';
import { plain } from './plain.ts';

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
    meaning: 'Says which server answers, whose token it is, and how much waits, is held back and has failed.',
    example: 'status',
    async run(call) {
      const { server } = call;
      const [session, overview] = await Promise.all([
        server.ask<{ project: string; scope: string }>('getSession'),
        server.ask<Overview>('getOverview'),
      ]);
      const { unfinished, waiting, active, held, oldestDue, dlq } = overview;
      const rows = [
        ['server', server.title],
        ['project', `${plain(session.project)}, with a ${session.scope} token`],
        [
          'unfinished',
          `${counted(unfinished)}: ${counted(waiting)} waiting, ${active} active, ${counted(held)} held back`,
        ],
        ['oldest due', oldestDue === undefined ? '-' : timeOf(oldestDue)],
        ['DLQ', `${counted(dlq.messages)} messages, ${counted(dlq.workflowRuns)} workflow runs`],
      ];
      return show(call, { server: server.url, ...session, ...overview }, columns(rows).trimEnd());
    },
  },
});

function counted({ count, isAtLeast }: Counted): string {
  return isAtLeast ? `at least ${count}` : String(count);
}
