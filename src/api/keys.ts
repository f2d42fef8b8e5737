/** The project's signing keys (contract M 10.3, 22.37, 22.38). */
import { type Answer, answer } from './answer.ts';
import { type Call, type Route, row, type Services } from './route.ts';
import { SigningKeysSchema } from './schemas.ts';

export function keyRoutes({ accounts }: Services): Route[] {
  async function get({ projectId }: Call): Promise<Answer> {
    const { current, next } = await accounts.signingKeys(projectId);
    return answer(200, { current, next });
  }

  async function rotate({ projectId }: Call): Promise<Answer> {
    const { current, next } = await accounts.rotate(projectId);
    return answer(200, { current, next });
  }

  const rotation = { answers: { 200: SigningKeysSchema }, handle: rotate };
  return [
    {
      ...row('full', 'GET', '/v2/keys', 'getSigningKeys'),
      summary: 'Reads the signing keys.',
      answers: { 200: SigningKeysSchema },
      handle: get,
    },
    {
      ...row('full', 'POST', '/v2/keys/rotate', 'rotateSigningKeys'),
      ...rotation,
      summary: 'Makes the next signing key the current one.',
    },
    {
      ...row('full', 'POST', '/v2/rotate', 'rotateSigningKeysOfOldClients'),
      ...rotation,
      summary: 'The same as /v2/keys/rotate, for older clients.',
    },
  ];
}
