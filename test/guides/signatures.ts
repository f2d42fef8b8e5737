/** Signatures that an endpoint must accept, and those that it must refuse. */
import { createHash, createHmac } from 'node:crypto';
import type { SigningKeys } from '../../src/testing/types.ts';

const BODY = '{"email":"eve@example.com"}';

/** Signatures for what `deliver` sends to `url`: one as it should be, and what is wrong with each of the others. */
export function signatures({ current }: Readonly<SigningKeys>, url: string): Record<string, string> {
  const nowS = Math.floor(Date.now() / 1000);
  const hash = (body: string) => createHash('sha256').update(body).digest('base64url');
  const sign = (changed: object, key = current) => {
    const claims = { iss: 'Upstash', sub: url, exp: nowS + 300, nbf: 0, iat: nowS, body: `${hash(BODY)}=` };
    const parts = [
      { alg: 'HS256', typ: 'JWT' },
      { ...claims, ...changed },
    ];
    const text = parts.map((part) => Buffer.from(JSON.stringify(part)).toString('base64url')).join('.');
    return `${text}.${createHmac('sha256', key).update(text).digest('base64url')}`;
  };
  return {
    genuine: sign({}),
    'not there': '',
    'made with another key': sign({}, 'sig_another'),
    'of another body': sign({ body: `${hash('another')}=` }),
    'too old': sign({ exp: nowS - 60 }),
    'for another URL': sign({ sub: `${url}/elsewhere` }),
  };
}

/** Calls an endpoint as Waypost does, with this signature, and answers its status. */
export async function deliver(url: string, signature: string): Promise<number> {
  const headers = { 'content-type': 'application/json', 'upstash-signature': signature };
  return (await fetch(url, { method: 'POST', headers, body: BODY })).status;
}
