/** How an endpoint knows who sent a delivery (contract M 29.118 to 29.120). */
import { createHash } from 'node:crypto';
import { expect } from 'vitest';
import { signatureOf } from '../support/signature.ts';
import { type Section, statement } from '../support/statement.ts';

export const signatures: Section = {
  title: 'Signatures',
  statements: [
    statement(
      'M118',
      'A delivery is signed with the current key and has the claims of the contract.',
      async (server) => {
        await server.publish('/a?b=c');
        const signature = signatureOf(await server.endpoint.arrival('/a'));
        const { current } = await server.get('/v2/keys');
        expect(signature.isSignedWith(current)).toBe(true);
        expect(signature.head).toEqual({ alg: 'HS256', typ: 'JWT' });
        const iat = Math.floor(server.clock.nowMs() / 1000);
        expect(signature.claims).toMatchObject({
          iss: 'Upstash',
          sub: server.destination('/a?b=c'),
          iat,
          exp: iat + 300,
          nbf: 0,
        });
        expect(signature.claims.jti).toMatch(/^jwt_/);
      },
    ),

    statement('M119', 'The body claim is the hash of the received body, even if it is empty.', async (server) => {
      for (const [path, body] of Object.entries({ '/full': 'grün', '/empty': '' })) {
        await server.publish(path, {}, body);
        const received = await server.endpoint.arrival(path);
        const hash = createHash('sha256').update(received.body).digest('base64url');
        expect(signatureOf(received).claims.body).toBe(`${hash}=`);
      }
    }),

    statement('M120', 'After a rotation the former next key is the current one, and signs.', async (server) => {
      const before = await server.get('/v2/keys');
      const rotated = await server.post('/v2/keys/rotate');
      expect(rotated.current).toBe(before.next);
      expect([before.current, before.next]).not.toContain(rotated.next);
      expect(await server.get('/v2/keys')).toEqual(rotated);
      await server.publish('/a');
      expect(signatureOf(await server.endpoint.arrival('/a')).isSignedWith(before.next)).toBe(true);
    }),
  ],
};
