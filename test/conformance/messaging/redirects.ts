/** What a redirect is reported as (contract M 7.3, 29.156). */
import { expect } from 'vitest';
import { type Section, statement } from '../support/statement.ts';

export const redirects: Section = {
  title: 'Redirects',
  statements: [
    statement('M156', 'The error of a redirect says that it is not followed, and names its target.', async (server) => {
      server.endpoint.replies('/a', { status: 308, headers: { Location: '/a/' } });
      const id = await server.publish('/a', { 'Upstash-Retries': '0' });
      await server.finished(id);
      const error = (await server.logs(id)).find(({ state }: { state: string }) => state === 'ERROR')?.error;
      expect(error).toContain(server.destination('/a/'));
      expect(error).toContain('redirects are not followed');
      expect((await server.get(`/v2/messages/${id}/explain`)).explanation).toContain(error);
    }),
  ],
};
