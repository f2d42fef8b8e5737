/** `waypost verify`: checks a signature and names the claims that fail. */
import { CommandFailed, EXIT } from '../command.ts';
import { BODY_OPTIONS, bodyOf } from '../http/body.ts';
import { type CurlRequest, readCurl } from '../http/curl.ts';
import { type Call, commandOf, show } from '../http/verb.ts';
import { plain } from '../plain.ts';

interface Verdict {
  isValid: boolean;
  failed?: { claim: string; reason: string }[];
}

export const verify = commandOf('verify', {
  '': {
    meaning:
      'Checks a signature with the signing keys of the project, as a receiver does, and names each claim that fails. With --request, the file is a whole request: either raw, with header lines, an empty line and the body, or as a curl command, as copied from browsers and proxies.',
    options: {
      '--signature <text>': 'Value of the header Upstash-Signature.',
      ...BODY_OPTIONS,
      '--url <address>': 'The requested URL. Default: that of the curl command; otherwise the URL is not checked.',
      '--request': 'Read signature and body from the request in the file.',
    },
    example: 'verify -f request.http --request --url https://example.com/orders',
    async run(call) {
      const verdict = await call.server.ask<Verdict>('verifySignature', { json: await signedRequestOf(call) });
      const failed = verdict.failed ?? [];
      const text = failed.map(({ claim, reason }) => `${claim}: ${plain(reason)}`).join('\n');
      show(call, verdict, verdict.isValid ? 'The signature is valid.' : text);
      return verdict.isValid ? EXIT.ok : EXIT.failed;
    },
  },
});

async function signedRequestOf(call: Call): Promise<{ signature: string; body: string; url?: string }> {
  const content = new TextDecoder().decode(await bodyOf(call));
  const request = call.values('request').length > 0 ? parseRequest(content) : { headers: [], body: content };
  const header = request.headers.find(([name]) => name.toLowerCase() === 'upstash-signature');
  const signature = call.values('signature').at(-1) ?? header?.[1].trim();
  if (signature === undefined) {
    const isRequest = call.values('request').length > 0;
    const missing = isRequest ? 'the request has no header Upstash-Signature' : '--signature <text> is missing';
    throw new CommandFailed(`verify: ${missing}`, EXIT.usage);
  }
  const url = call.values('url').at(-1) ?? request.url;
  return { signature, body: request.body, ...(url !== undefined && { url }) };
}

function parseRequest(text: string): CurlRequest {
  if (/^\s*curl\s/.test(text)) return readCurl(text.trim());
  const [, head = '', body = ''] = /^(.*?)\r?\n\r?\n(.*)$/s.exec(text) ?? [];
  const headers = [...head.matchAll(/^([^:\s]+):[ \t]*(.*?)\r?$/gm)].map(
    ([, name = '', value = '']): [string, string] => [name, value],
  );
  return { headers, body };
}
