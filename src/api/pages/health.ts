/**
 * Reports whether the process is alive, and whether it can serve requests, for balancers and supervisors. Needs no token.
 */
import type { UnavailableCell } from '../../engine/commands.ts';
import { publicReason } from '../../engine/store-errors.ts';
import { type ApiResponse, jsonResponse, refusal } from '../response.ts';
import { type Route, row, type Services } from '../route.ts';
import { HealthSchema } from '../schemas.ts';

export function healthRoutes({ engine, isReady, log }: Services): Route[] {
  /** Concurrent requests share one ping: a ping writes to the store, and anybody may request it without a token. */
  let pinging: Promise<readonly UnavailableCell[]> | undefined;

  /** The server is ready if it has started, is not shutting down, and at least one cell can read and save. */
  async function ready(): Promise<ApiResponse> {
    if (!isReady()) return refusal(503, 'the server is starting or shutting down');
    pinging ??= engine.ping().finally(() => {
      pinging = undefined;
    });
    let unavailable: readonly UnavailableCell[];
    try {
      unavailable = await pinging;
    } catch (error) {
      log.warn('store_not_reachable', { reason: error instanceof Error ? error.message : String(error) });
      return refusal(503, `the store does not read and save: ${publicReason(error)}`);
    }
    if (unavailable.length === 0) return jsonResponse(200, { status: 'ready' });
    const reasons = Object.fromEntries(unavailable.map(({ name, reason }) => [name, reason]));
    return jsonResponse(200, { status: 'ready', away: unavailable.map(({ name }) => name), reasons });
  }

  return [
    {
      ...row('public', 'GET', '/healthz', 'getHealth'),
      summary: 'Responds while the process is alive.',
      responses: { 200: HealthSchema },
      handle: () => jsonResponse(200, { status: 'alive' }),
    },
    {
      ...row('public', 'GET', '/readyz', 'getReadiness'),
      summary: 'Responds with 200 while requests can be served, otherwise with 503.',
      refusals: [503],
      responses: { 200: HealthSchema },
      handle: ready,
    },
  ];
}
