/** `waypost dlq`: lists, shows, retries and deletes entries of the dead letter queue. */
import { inZone, minuteOf } from '../columns.ts';
import { actOnMany, BULK_OPTIONS } from '../http/bulk.ts';
import { readList, sumPages } from '../http/pages.ts';
import { read } from '../http/simple.ts';
import { type Call, commandOf, showTable, type Verb } from '../http/verb.ts';

interface DlqEntry {
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
  meaning: 'Lists dead messages, newest first. With --source workflow, lists failed runs.',
  filtersOf: 'listDlqMessages',
  example: 'dlq list --response-status 500 --from-date 2026-01-31',
  run: async (call) =>
    showTable(call, await readList<DlqEntry>(call, 'listDlqMessages', 'messages', PAGE_MAX), [
      ['DLQ ID', ({ dlqId }) => dlqId],
      ['MESSAGE', ({ messageId, workflowRunId }) => messageId ?? workflowRunId],
      [inZone('CREATED'), ({ createdAt }) => (createdAt === undefined ? '' : minuteOf(createdAt))],
      ['STATUS', ({ responseStatus }) => responseStatus || '-'],
      ['URL', ({ url, workflowUrl }) => url ?? workflowUrl],
    ]),
};

const showOne: Verb = {
  ...read('dlq', 'getDlqMessage', '<DLQ id>'),
  meaning: 'Shows one entry, with the bodies of the message and of the last response.',
  example: 'dlq show 1795257963176-1142',
};

const retry: Verb = {
  words: '[<DLQ id>...]',
  meaning:
    'Publishes the entries again and removes them from the DLQ. For failed runs, use "waypost runs resume" or "restart".',
  filtersOf: 'retryDlqMessages',
  options: BULK_OPTIONS,
  example: 'dlq retry --url https://example.com/orders --yes',
  run: retryDead,
};

const deleteEntries: Verb = {
  words: '[<DLQ id>...]',
  meaning: 'Deletes the entries permanently.',
  filtersOf: 'deleteDlqMessages',
  options: BULK_OPTIONS,
  example: 'dlq delete --to-date 2026-01-01 --dry-run',
  run: (call) =>
    actOnMany(
      call,
      {
        ...DLQ_ENTRIES,
        verb: 'delete',
        act: sumPages('deleteDlqMessages', {
          amountOf: ({ deleted }: { deleted: number }) => deleted,
          pageMax: PAGE_MAX,
        }),
      },
      'Deleted',
    ),
};

const DLQ_ENTRIES = {
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
  return actOnMany(call, { ...DLQ_ENTRIES, verb: 'retry', act }, 'Retried');
}

export const dlq = commandOf('dlq', { list, show: showOne, retry, delete: deleteEntries });
