/** `waypost replay`: publishes a message again, with or without changes. */
import { Buffer, isUtf8 } from 'node:buffer';
import { bodyOf } from '../http/body.ts';
import { type Call, commandOf, show } from '../http/verb.ts';
import { headersOf, MESSAGE } from './publish.ts';

export const replay = commandOf('replay', {
  '': {
    words: '<message id>',
    meaning:
      'Publishes a message again, finished or not, and prints the id of the new one. What no option changes is as it was published, without a delay.',
    headersOf: 'retryDlqMessage',
    options: {
      ...MESSAGE,
      '--destination <url>': 'Another URL to deliver to.',
      '--queue <name>': 'Another queue; empty: outside of any queue.',
    },
    example: `replay msg_42 --body '{"order":43}' --destination https://example.com/repaired`,
    async run(call) {
      const changes = new TextEncoder().encode(JSON.stringify(await changesOf(call)));
      const { messageId } = await call.server.ask<{ messageId: string }>('replayMessage', {
        words: call.words,
        body: changes,
      });
      return show(call, { messageId }, messageId);
    },
  },
});

async function changesOf(call: Call): Promise<Record<string, unknown>> {
  const destination = call.values('destination').at(-1);
  const queue = call.values('queue').at(-1);
  const body = await bodyOf(call);
  const headers: Record<string, string[]> = {};
  for (const [name, value] of headersOf(call)) headers[name] = [...(headers[name] ?? []), value];
  return {
    ...(destination !== undefined && { destination }),
    ...(queue !== undefined && { queue: queue === '' ? null : queue }),
    ...(Object.keys(headers).length > 0 && { headers }),
    ...(body &&
      (isUtf8(body) ? { body: new TextDecoder().decode(body) } : { bodyBase64: Buffer.from(body).toString('base64') })),
  };
}
