/** Is the process alive, and should it be sent requests? For balancers and supervisors; needs no token. */
import { type Answer, answer, refusal } from './answer.ts';
import type { Route, Services } from './route.ts';
import { HealthSchema } from './schemas.ts';

export function healthRoutes({ engine, isReady, log }: Services): Route[] {
  /** Ready: started, not shutting down, and the store answers. */
  async function ready(): Promise<Answer> {
    if (!isReady()) return refusal(503, 'the server is starting or shutting down');
    try {
      await engine.ping();
    } catch (error) {
      log.warn('store_not_reachable', { kind: error instanceof Error ? error.name : typeof error });
      return refusal(503, 'the store does not answer');
    }
    return answer(200, { status: 'ready' });
  }

  return [
    {
      method: 'GET',
      path: '/healthz',
      access: 'public',
      summary: 'Answers while the process is alive.',
      answers: { 200: HealthSchema },
      handle: () => answer(200, { status: 'alive' }),
    },
    {
      method: 'GET',
      path: '/readyz',
      access: 'public',
      summary: 'Answers 200 while requests can be served, else 503.',
      refusals: [503],
      answers: { 200: HealthSchema },
      handle: ready,
    },
  ];
}
