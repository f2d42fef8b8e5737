/** Where the password in a URL appears (contract M 5.2.4, 29.160). */
import { expect } from 'vitest';
import { type Section, statement } from '../support/statement.ts';

export const passwords: Section = {
  title: 'Passwords in URLs',
  statements: [
    statement(
      'M160',
      'The password in a URL is masked wherever it is shown, and delivered as `Authorization`.',
      async (server) => {
        const withPassword = (path: string, password: string) =>
          server.destination(path).replace('://', `://ann:${password}@`);
        const url = withPassword('/a', 'c4n4ry');
        const published = await server.post(`/v2/publish/${url}`, undefined, {
          headers: { 'Upstash-Callback': withPassword('/told', 'c4n4ry') },
        });
        expect(published.url).toBe(withPassword('/a', '***'));
        const basic = `Basic ${Buffer.from('ann:c4n4ry').toString('base64')}`;
        expect((await server.endpoint.arrival('/a')).headers['authorization']).toBe(basic);
        const told = await server.endpoint.arrival('/told');
        expect(told.headers['authorization']).toBe(basic);
        expect(JSON.parse(told.body.toString()).url).toBe(withPassword('/a', '***'));
        const { logs } = await server.get(`/v2/logs?url=${encodeURIComponent(url)}`);
        expect(logs.length).toBeGreaterThan(0);
        expect(JSON.stringify(logs)).not.toContain('c4n4ry');
        const refused = await server.ask('POST', `/v2/publish/${withPassword('/a', '***')}`);
        expect(refused.status).toBe(400);
      },
    ),
  ],
};
