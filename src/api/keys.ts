/** The project's signing keys (contract M 10.3, 22.37, 22.38). */
import { type Answer, answer } from './answer.ts';
import type { Call, Route, Services } from './route.ts';
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

  const rotation = { method: 'POST', access: 'full', answers: { 200: SigningKeysSchema }, handle: rotate } as const;
  return [
    {
      method: 'GET',
      path: '/v2/keys',
      operationId: 'getSigningKeys',
      access: 'full',
      summary: 'Reads the signing keys.',
      answers: { 200: SigningKeysSchema },
      handle: get,
    },
    {
      ...rotation,
      path: '/v2/keys/rotate',
      operationId: 'rotateSigningKeys',
      summary: 'Makes the next signing key the current one.',
    },
    {
      ...rotation,
      path: '/v2/rotate',
      operationId: 'rotateSigningKeysOfOldClients',
      summary: 'The same as /v2/keys/rotate, for older clients.',
    },
  ];
}
