/** `waypost messages`: what is not finished, and how to stop it. */
import { minuteOf } from './columns.ts';
import { CommandFailed, EXIT } from './command.ts';
import { retryDead } from './dlq.ts';
import { actOnMany, BULK, YES } from './http/bulk.ts';
import { readList, sumPages, sumPieces } from './http/pages.ts';
import { read } from './http/simple.ts';
import { commandOf, showTable, type Verb } from './http/verb.ts';

interface Unfinished {
  messageId: string;
  state: string;
  createdAt: number;
  url: string;
  explanation: string;
}

const PAGE_MAX = 1000;
/** What the server cancels at a time. */
const CANCELLED_MAX = 500;

const list: Verb = {
  meaning: 'The messages that are not finished, newest first, each with why it waits.',
  filtersOf: 'listUnfinishedMessages',
  example: 'messages list --state held --queue-name invoices',
  run: async (call) =>
    showTable(call, await readList<Unfinished>(call, 'listUnfinishedMessages', 'messages', PAGE_MAX), [
      ['MESSAGE', ({ messageId }) => messageId],
      ['STATE', ({ state }) => state],
      ['CREATED (UTC)', ({ createdAt }) => minuteOf(createdAt)],
      ['URL', ({ url }) => url],
      ['WHY', ({ explanation }) => explanation],
    ]),
};

const showOne: Verb = {
  ...read('messages', 'getMessage', '<message id>'),
  meaning: 'One message that is not finished, or was delivered a moment ago, with body and headers.',
  example: 'messages show msg_42',
};

const cancel: Verb = {
  words: '[<message id>...]',
  meaning: 'Cancels the messages with these ids, or all that match the filters.',
  filtersOf: 'cancelMessages',
  options: BULK,
  example: 'messages cancel --label newsletter --dry-run',
  run: (call) =>
    actOnMany(
      call,
      {
        ids: 'messageIds',
        verb: 'cancel',
        noun: ['message', 'messages'],
        count: (call, onProgress) =>
          sumPages(
            call,
            'listUnfinishedMessages',
            { amountOf: ({ messages }: { messages: unknown[] }) => messages.length, pageMax: PAGE_MAX },
            onProgress,
          ),
        act: (call, onProgress) =>
          sumPieces(
            call,
            'cancelMessages',
            { amountOf: ({ cancelled }: { cancelled: number }) => cancelled, pageMax: CANCELLED_MAX },
            onProgress,
          ),
      },
      'Cancelled',
    ),
};

const retry: Verb = {
  words: '<message id>...',
  meaning: 'Publishes messages anew that could not be delivered: the entries of the DLQ with these ids of messages.',
  options: { '--dry-run': BULK['--dry-run'], ...YES },
  example: 'messages retry msg_42 --yes',
  async run(call) {
    const found: string[] = [];
    for (const messageId of call.words) {
      const query = new URLSearchParams({ messageId });
      const { messages: dead } = await call.server.ask<{ messages: { dlqId: string }[] }>('listDlqMessages', { query });
      found.push(...dead.map(({ dlqId }) => dlqId));
    }
    if (found.length === 0) throw new CommandFailed('the DLQ has none of these messages', EXIT.notFound);
    return retryDead({ ...call, words: found });
  },
};

export const messages = commandOf('messages', { list, show: showOne, cancel, retry });
