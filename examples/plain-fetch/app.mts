import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import { createServer } from 'node:http';
import { text } from 'node:stream/consumers';

const { QSTASH_URL, QSTASH_TOKEN, QSTASH_CURRENT_SIGNING_KEY = '', QSTASH_NEXT_SIGNING_KEY = '' } = process.env;
const PORT = Number(process.env.PORT ?? 3000);
const HERE = `http://127.0.0.1:${PORT}/greet`;

const server = createServer(async (request, response) => {
  const body = await text(request);
  if (!isSigned(String(request.headers['upstash-signature']), body)) {
    response.writeHead(403).end();
    return;
  }
  console.log(`received ${body}`);
  response.end(); // any 2xx completes the message
  server.close();
});
server.listen(PORT, '127.0.0.1', publish);

async function publish(): Promise<void> {
  const response = await fetch(`${QSTASH_URL}/v2/publish/${HERE}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${QSTASH_TOKEN}`, 'content-type': 'application/json', 'upstash-retries': '5' },
    body: JSON.stringify({ hello: 'world' }),
  });
  const result = (await response.json()) as { messageId?: string; error?: string };
  console.log(response.ok ? `published ${result.messageId}` : `rejected: ${result.error}`);
  if (!response.ok) server.close();
}

/**
 * A signature is a JSON Web Token (HS256). It is valid if it was made with one of the two keys for this URL and this
 * body, and has not expired.
 */
function isSigned(signature: string, body: string): boolean {
  const [header = '', claims = '', mac = ''] = signature.split('.');
  const isOurs = [QSTASH_CURRENT_SIGNING_KEY, QSTASH_NEXT_SIGNING_KEY].some((key) => {
    const wanted = createHmac('sha256', key).update(`${header}.${claims}`).digest();
    const given = Buffer.from(mac, 'base64url');
    return key !== '' && given.length === wanted.length && timingSafeEqual(given, wanted);
  });
  if (!isOurs) return false;
  const { sub, exp, body: hash } = JSON.parse(Buffer.from(claims, 'base64url').toString());
  const isThis = Buffer.from(hash, 'base64url').equals(createHash('sha256').update(body).digest());
  return isThis && sub === HERE && exp > Date.now() / 1000;
}
