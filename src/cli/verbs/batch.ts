/** `waypost batch`: publishes the messages of a file, in requests of limited size. */
import { CommandFailed, EXIT } from '../command.ts';
import { bodyOf } from '../http/body.ts';
import { type Call, commandOf, show } from '../http/verb.ts';
import { progressOf } from '../progress.ts';
import { linesOf } from './publish.ts';

/** Limits for one request, below the server's default limits: 1,000 messages and 100 MiB. */
const MESSAGES_MAX = 500;
const LENGTH_MAX = 32 * 2 ** 20;

export const batch = commandOf('batch', {
  '': {
    meaning: `Publishes many messages, up to ${MESSAGES_MAX} per request. The file is a JSON array of messages, as in the API.`,
    options: { '-f, --file <path>': 'The file; - for standard input.' },
    example: 'batch -f messages.json',
    run: publishAll,
  },
});

async function publishAll(call: Call): Promise<number> {
  const body = await bodyOf(call);
  if (body === undefined) throw new CommandFailed('batch: -f <path> is missing', EXIT.usage);
  const messages = parseMessages(body);
  const responses: object[] = [];
  const progress = progressOf(call.terminal);
  const headers = [['content-type', 'application/json']] as const;
  try {
    for (const request of requestsOf(messages)) {
      responses.push(...(await call.server.ask<object[]>('publishBatch', { body: request, headers })));
      if (messages.length > MESSAGES_MAX) progress.report(responses.length, messages.length, 'messages');
    }
  } catch (error) {
    progress.end();
    if (responses.length === 0 || !(error instanceof CommandFailed)) throw error;
    show(call, responses, linesOf(responses));
    const text = `${error.message}; only the first ${responses.length} of ${messages.length} messages were sent`;
    throw new CommandFailed(text, error.exitCode);
  }
  progress.end();
  show(call, responses, linesOf(responses));
  const failed = responses.filter((each) => 'error' in each).length;
  if (failed > 0) throw new CommandFailed(`${failed} of ${responses.length} messages were refused`);
  return EXIT.ok;
}

function parseMessages(body: Uint8Array): unknown[] {
  let found: unknown;
  try {
    found = JSON.parse(new TextDecoder().decode(body));
  } catch (error) {
    throw new CommandFailed(`batch: the file is not JSON: ${(error as Error).message}`, EXIT.usage);
  }
  if (!Array.isArray(found)) throw new CommandFailed('batch: the file must be an array of messages', EXIT.usage);
  return found;
}

/** The bodies of the requests: JSON arrays of messages. */
function* requestsOf(messages: readonly unknown[]): Generator<string> {
  let texts: string[] = [];
  let length = 0;
  for (const message of messages) {
    const text = JSON.stringify(message);
    if (texts.length === MESSAGES_MAX || (texts.length > 0 && length + text.length > LENGTH_MAX)) {
      yield `[${texts.join(',')}]`;
      texts = [];
      length = 0;
    }
    texts.push(text);
    length += text.length;
  }
  if (texts.length > 0) yield `[${texts.join(',')}]`;
}
