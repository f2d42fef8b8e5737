/** `waypost groups`: lists, changes and deletes URL groups, whose endpoints each receive a published message. */
import { EXIT } from '../command.ts';
import { action, listed, read } from '../http/simple.ts';
import { type Call, commandOf } from '../http/verb.ts';

interface UrlGroup {
  name: string;
  endpoints: { url: string }[];
}

export const groups = commandOf('groups', {
  list: listed<UrlGroup>('groups', 'listUrlGroups', [
    ['GROUP', ({ name }) => name],
    ['ENDPOINTS', ({ endpoints }) => endpoints.length],
    ['URLS', ({ endpoints }) => endpoints.map(({ url }) => url).join(' ')],
  ]),
  show: read('groups', 'getUrlGroup', '<group>'),
  add: {
    words: '<group> <url>...',
    meaning: 'Adds endpoints to a group, and creates the group if it does not exist.',
    example: 'groups add orders https://example.com/a https://example.com/b',
    run: (call) => change(call, 'addUrlGroupEndpoints', 'Added'),
  },
  remove: {
    words: '<group> <url>...',
    meaning: 'Removes endpoints from a group. A group without endpoints is deleted.',
    example: 'groups remove orders https://example.com/b',
    run: (call) => change(call, 'removeUrlGroupEndpoints', 'Removed'),
  },
  delete: action('groups', 'deleteUrlGroup', '<group>', 'Deleted', 'Deletes the group permanently.', true),
});

async function change({ words, server, terminal, isJson }: Call, operationId: string, done: string): Promise<number> {
  const [group = '', ...urls] = words;
  await server.ask(operationId, { words: [group], json: { endpoints: urls.map((url) => ({ url })) } });
  if (!isJson) terminal.print(`${done} ${urls.join(' ')}.\n`);
  return EXIT.ok;
}
