/** Says whose token a request came with, so that the console can show the project and leave out what is not allowed. */
import { answer } from './answer.ts';
import { type Route, row, type Services } from './route.ts';
import { SessionSchema } from './schemas.ts';

export function sessionRoutes({ accounts }: Services): Route[] {
  return [
    {
      ...row('any', 'GET', '/v2/waypost/session', 'getSession'),
      summary: 'Reads which project the token belongs to, and what it may do.',
      answers: { 200: SessionSchema },
      handle: ({ projectId, scope, tokenName }) =>
        answer(200, { project: accounts.projectName(projectId), scope, tokenName }),
    },
  ];
}
