/** `waypost messages`: lists, shows, cancels and retries unfinished messages. */
import { inZone, minuteOf } from '../columns.ts';
import { CommandFailed, EXIT } from '../command.ts';
import { actOnMany, BULK_OPTIONS, YES_OPTION } from '../http/bulk.ts';
import { readList, sumPages } from '../http/pages.ts';
import { read } from '../http/simple.ts';
import { type Call, commandOf, showTable, type Verb } from '../http/verb.ts';
import { retryDead } from './dlq.ts';

interface UnfinishedMessage {
  messageId: string;
  state: string;
  createdAt: number;
  url: string;
  explanation: string;
}

const PAGE_MAX = 1000;

const list: Verb = {
  meaning: 'Lists unfinished messages, newest first, each with the reason why it waits.',
  filtersOf: 'listUnfinishedMessages',
  example: 'messages list --state held --queue-name invoices',
  run: async (call) =>
    showTable(call, await readList<UnfinishedMessage>(call, 'listUnfinishedMessages', 'messages', PAGE_MAX), [
      ['MESSAGE', ({ messageId }) => messageId],
      ['STATE', ({ state }) => state],
      [inZone('CREATED'), ({ createdAt }) => minuteOf(createdAt)],
      ['URL', ({ url }) => url],
      ['WHY', ({ explanation }) => explanation],
    ]),
};

const showOne: Verb = {
  ...read('messages', 'getMessage', '<message id>'),
  meaning: 'Shows an unfinished or recently delivered message, with its body and headers.',
  example: 'messages show msg_42',
};

const cancel: Verb = {
  words: '[<message id>...]',
  meaning: 'Cancels the messages with these ids, or all that match the filters.',
  filtersOf: 'cancelMessages',
  options: BULK_OPTIONS,
  example: 'messages cancel --label newsletter --dry-run',
  run: (call) =>
    actOnMany(
      call,
      {
        ids: 'messageIds',
        verb: 'cancel',
        noun: ['message', 'messages'],
        count: sumPages('listUnfinishedMessages', {
          amountOf: ({ messages }: { messages: unknown[] }) => messages.length,
          pageMax: PAGE_MAX,
        }),
        act: async ({ server, query }) =>
          (await server.ask<{ cancelled: number }>('cancelMessages', { query })).cancelled,
      },
      'Cancelled',
    ),
};

const retry: Verb = {
  words: '<message id>...',
  meaning:
    'Makes delayed and retrying messages due now; queues and flow control still apply. Messages in the DLQ are published again, after confirmation.',
  options: YES_OPTION,
  example: 'messages retry msg_42 --yes',
  async run(call) {
    const { words, isJson, terminal } = call;
    const due: string[] = [];
    const dead: string[] = [];
    for (const id of words) {
      if (await makeDue(call, id)) due.push(id);
      else dead.push(...(await dlqIdsOf(call, id)));
    }
    if (due.length + dead.length === 0)
      throw new CommandFailed('none of them is unfinished or in the DLQ', EXIT.notFound);
    if (due.length > 0) terminal.print(isJson ? `${JSON.stringify({ due })}\n` : `Due now: ${due.join(' ')}\n`);
    return dead.length === 0 ? EXIT.ok : retryDead({ ...call, words: dead });
  },
};

async function makeDue({ server }: Call, id: string): Promise<boolean> {
  try {
    await server.ask('retryMessage', { words: [id] });
    return true;
  } catch (error) {
    if (error instanceof CommandFailed && error.exitCode === EXIT.notFound) return false;
    throw error;
  }
}

async function dlqIdsOf({ server }: Call, messageId: string): Promise<string[]> {
  const query = new URLSearchParams({ messageId });
  const { messages: dead } = await server.ask<{ messages: { dlqId: string }[] }>('listDlqMessages', { query });
  return dead.map(({ dlqId }) => dlqId);
}

export const messages = commandOf('messages', { list, show: showOne, cancel, retry });
