/** Creates verbs that each run a single operation of the API. */
import { EXIT } from '../command.ts';
import { plainJson } from '../plain.ts';
import { confirm, YES_OPTION } from './bulk.ts';
import { type Column, show, showTable, type Verb } from './verb.ts';

/** Lists all items, which the server returns in one response. */
export function listed<Item>(command: string, operationId: string, table: readonly Column<Item>[]): Verb {
  return {
    meaning: `Lists the ${command} of the project.`,
    filtersOf: operationId,
    example: `${command} list`,
    run: async (call) => showTable(call, await call.server.ask<Item[]>(operationId, { query: call.query }), table),
  };
}

/** Shows one item as JSON. */
export function read(command: string, operationId: string, word: string): Verb {
  return {
    words: word,
    meaning: 'Shows all members as JSON.',
    example: `${command} show ${exampleOf(command)}`,
    async run(call) {
      const found = await call.server.ask(operationId, { words: call.words });
      return show(call, found, plainJson(found, 2));
    },
  };
}

/** Changes one item. `done`: the text before the item's name in the output. */
export function action(
  command: string,
  operationId: string,
  word: string,
  done: string,
  meaning: string,
  isDestructive = false,
): Verb {
  const verb = operationId.replace(/[A-Z].*/, '');
  return {
    words: word,
    meaning,
    ...(isDestructive && { options: YES_OPTION }),
    example: `${command} ${verb} ${exampleOf(command)}${isDestructive ? ' --yes' : ''}`,
    async run(call) {
      const { words, query, server, terminal, isJson } = call;
      if (isDestructive) await confirm(call, `${verb} ${words[0]}`);
      await server.ask(operationId, { words, query });
      if (!isJson) terminal.print(`${done} ${words[0]}.\n`);
      return EXIT.ok;
    },
  };
}

function exampleOf(command: string): string {
  return { queues: 'invoices', keys: 'crm', schedules: 'nightly', groups: 'orders' }[command] ?? '';
}
