/** `waypost dlq`: what could not be delivered, and how to try it again. */
import { inZone, minuteOf } from '../columns.ts';
import { actOnMany, BULK } from '../http/bulk.ts';
import { readList, sumPages } from '../http/pages.ts';
import { read } from '../http/simple.ts';
import { type Call, commandOf, showTable, type Verb } from '../http/verb.ts';

interface Dead {
  dlqId: string;
  messageId?: string;
  workflowRunId?: string;
  url?: string;
  workflowUrl?: string;
  createdAt?: number;
  responseStatus?: number;
}

const PAGE_MAX = 100;

const list: Verb = {
  meaning: 'What could not be delivered, newest first. With --source workflow the runs that failed.',
  filtersOf: 'listDlqMessages',
  example: 'dlq list --response-status 500 --from-date 2026-01-31',
  run: async (call) =>
    showTable(call, await readList<Dead>(call, 'listDlqMessages', 'messages', PAGE_MAX), [
      ['DLQ ID', ({ dlqId }) => dlqId],
      ['MESSAGE', ({ messageId, workflowRunId }) => messageId ?? workflowRunId],
      [inZone('CREATED'), ({ createdAt }) => (createdAt === undefined ? '' : minuteOf(createdAt))],
      ['STATUS', ({ responseStatus }) => responseStatus || '-'],
      ['URL', ({ url, workflowUrl }) => url ?? workflowUrl],
    ]),
};

const showOne: Verb = {
  ...read('dlq', 'getDlqMessage', '<DLQ id>'),
  meaning: 'One entry with the body of the message and of the last answer.',
  example: 'dlq show 1795257963176-1142',
};

const retry: Verb = {
  words: '[<DLQ id>...]',
  meaning:
    'Publishes the entries anew and takes them out of the DLQ. Runs are resumed or restarted: see "waypost runs".',
  filtersOf: 'retryDlqMessages',
  options: BULK,
  example: 'dlq retry --url https://example.com/orders --yes',
  run: retryDead,
};

const deleteThem: Verb = {
  words: '[<DLQ id>...]',
  meaning: 'Deletes the entries for good.',
  filtersOf: 'deleteDlqMessages',
  options: BULK,
  example: 'dlq delete --to-date 2026-01-01 --dry-run',
  run: (call) =>
    actOnMany(
      call,
      {
        ...OF_DEAD,
        verb: 'delete',
        act: sumPages('deleteDlqMessages', {
          amountOf: ({ deleted }: { deleted: number }) => deleted,
          pageMax: PAGE_MAX,
        }),
      },
      'Deleted',
    ),
};

const OF_DEAD = {
  ids: 'dlqIds',
  noun: ['entry of the DLQ', 'entries of the DLQ'] as const,
  count: sumPages('listDlqMessages', {
    amountOf: ({ messages }: { messages: unknown[] }) => messages.length,
    pageMax: PAGE_MAX,
  }),
};

export function retryDead(call: Call): Promise<number> {
  const amountOf = ({ responses }: { responses: unknown[] }) => responses.length;
  const act = sumPages('retryDlqMessages', { amountOf, pageMax: PAGE_MAX });
  return actOnMany(call, { ...OF_DEAD, verb: 'retry', act }, 'Retried');
}

export const dlq = commandOf('dlq', { list, show: showOne, retry, delete: deleteThem });
