/** Verbs that are one operation each. */
import { EXIT } from '../command.ts';
import { plainJson } from '../plain.ts';
import { agreeOn, YES } from './bulk.ts';
import { type Column, show, showTable, type Verb } from './verb.ts';

/** A whole list in one answer. */
export function listed<Item>(command: string, operationId: string, table: readonly Column<Item>[]): Verb {
  return {
    meaning: `The ${command} of the project.`,
    filtersOf: operationId,
    example: `${command} list`,
    run: async (call) => showTable(call, await call.server.ask<Item[]>(operationId, { query: call.query }), table),
  };
}

/** All that the server says of one thing. */
export function read(command: string, operationId: string, word: string): Verb {
  return {
    words: word,
    meaning: 'All that the server says of it, as JSON.',
    example: `${command} show ${exampleOf(command)}`,
    async run(call) {
      const found = await call.server.ask(operationId, { words: call.words });
      return show(call, found, plainJson(found, 2));
    },
  };
}

/** A change of one thing. `done`: what is printed before its name. */
export function action(
  command: string,
  operationId: string,
  word: string,
  done: string,
  meaning: string,
  doesDestroy = false,
): Verb {
  const verb = operationId.replace(/[A-Z].*/, '');
  return {
    words: word,
    meaning,
    ...(doesDestroy && { options: YES }),
    example: `${command} ${verb} ${exampleOf(command)}${doesDestroy ? ' --yes' : ''}`,
    async run(call) {
      const { words, query, server, terminal, isJson } = call;
      if (doesDestroy) await agreeOn(call, `${verb} ${words[0]}`);
      await server.ask(operationId, { words, query });
      if (!isJson) terminal.print(`${done} ${words[0]}.\n`);
      return EXIT.ok;
    },
  };
}

function exampleOf(command: string): string {
  return { queues: 'invoices', keys: 'crm', schedules: 'nightly', groups: 'orders' }[command] ?? '';
}
