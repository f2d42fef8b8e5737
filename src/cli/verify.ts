/** `waypost verify`: why a receiver refuses a signature. */
import { CommandFailed, EXIT } from './command.ts';
import { BODY, bodyOf } from './http/body.ts';
import { type Call, commandOf, show } from './http/verb.ts';
import { plain } from './plain.ts';

interface Verdict {
  isValid: boolean;
  failed?: { claim: string; reason: string }[];
}

export const verify = commandOf('verify', {
  '': {
    meaning:
      'Checks a signature with the signing keys of the project, as a receiver does, and names each claim that fails. With --request the file is a whole request as it came: its lines of headers, an empty line, its body.',
    options: {
      '--signature <text>': 'Value of the header Upstash-Signature.',
      ...BODY,
      '--url <address>': 'The destination as it was published; not checked without it.',
      '--request': 'Take signature and body from the request in the file.',
    },
    example: 'verify -f request.http --request --url https://example.com/orders',
    async run(call) {
      const verdict = await call.server.ask<Verdict>('verifySignature', { json: await givenIn(call) });
      const failed = verdict.failed ?? [];
      const text = failed.map(({ claim, reason }) => `${claim}: ${plain(reason)}`).join('\n');
      show(call, verdict, verdict.isValid ? 'The signature is valid.' : text);
      return verdict.isValid ? EXIT.ok : EXIT.failed;
    },
  },
});

async function givenIn(call: Call): Promise<{ signature: string; body: string; url?: string }> {
  const content = new TextDecoder().decode(await bodyOf(call));
  const isRequest = call.values('request').length > 0;
  const [, head = '', sent = ''] = (isRequest && /^(.*?)\r?\n\r?\n(.*)$/s.exec(content)) || [];
  const signature = call.values('signature').at(-1) ?? /^upstash-signature:\s*(\S+)/im.exec(head)?.[1];
  if (signature === undefined) throw new CommandFailed('verify: --signature <text> is missing', EXIT.usage);
  const url = call.values('url').at(-1);
  return { signature, body: isRequest ? sent : content, ...(url !== undefined && { url }) };
}
