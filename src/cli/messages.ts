/** `waypost messages`: what is not finished, and how to stop it. */
import { minuteOf } from './columns.ts';
import { actOnMany, BULK } from './http/bulk.ts';
import { countOf, readList, readPages } from './http/pages.ts';
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
        async count() {
          const amount = { countMax: countOf(call, Number.POSITIVE_INFINITY), pageMax: PAGE_MAX };
          let found = 0;
          const itemsOf = ({ messages }: { messages: unknown[] }) => messages;
          for await (const page of readPages(call, 'listUnfinishedMessages', { itemsOf, ...amount }))
            found += page.length;
          return found;
        },
        async act() {
          return (await call.server.ask<{ cancelled: number }>('cancelMessages', { query: call.query })).cancelled;
        },
      },
      'Cancelled',
    ),
};

export const messages = commandOf('messages', { list, show: showOne, cancel });
