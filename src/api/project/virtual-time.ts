/** Advances virtual time in `waypost dev --virtual-time`; other servers do not have these routes. Our own addition. */
import { Type } from '@sinclair/typebox';
import type { Millis } from '../../engine/model.ts';
import { invalidBody } from '../../protocol/errors.ts';
import { objectOf } from '../../protocol/json-objects.ts';
import { isDateMs, toDurationMs } from '../../protocol/times/durations.ts';
import { SMALL_JSON_LIMIT } from '../limits.ts';
import { readJson } from '../requests/json-body.ts';
import { type ApiResponse, jsonResponse } from '../response.ts';
import { type Call, type Route, row, type Services, type VirtualTime } from '../route.ts';
import { exactly, Ms, Text } from '../schemas.ts';

const PATH = '/v2/waypost/time';

const LIMIT_MS = 366 * 86_400_000;

const DurationSchema = Type.Union([Type.Integer({ minimum: 0 }), Text], {
  description: 'milliseconds, or a text such as "7d" or "1h30m"',
});
const AdvanceSchema = Type.Object({ duration: DurationSchema });
const UntilIdleSchema = Type.Object({ limit: Type.Optional(DurationSchema) });
const PassedSchema = exactly({
  now: Type.Integer({ ...Ms, description: 'the virtual time, Unix time in milliseconds' }),
  isIdle: Type.Boolean({ description: 'whether no message and no run waits for a time' }),
});

export function virtualTimeRoutes({ virtualTime }: Services): Route[] {
  return virtualTime ? routesFor(virtualTime) : [];
}

function routesFor(time: VirtualTime): Route[] {
  const response = (): ApiResponse => jsonResponse(200, { now: time.nowMs(), isIdle: time.isIdle });

  async function advance({ body }: Call): Promise<ApiResponse> {
    const { duration } = await membersOf(body);
    await time.advance(durationMs('duration', duration, time));
    return response();
  }

  async function runUntilIdle({ body }: Call): Promise<ApiResponse> {
    const { limit = LIMIT_MS } = await membersOf(body);
    await time.runUntilIdle(durationMs('limit', limit, time));
    return response();
  }

  return [
    {
      ...row('full', 'POST', `${PATH}/advance`, 'advanceTime'),
      summary: 'Advances virtual time, and waits until all work that becomes due is done. Only with --virtual-time.',
      takes: { body: AdvanceSchema },
      responses: { 200: PassedSchema },
      handle: advance,
    },
    {
      ...row('full', 'POST', `${PATH}/run-until-idle`, 'runUntilIdle'),
      summary:
        'Advances virtual time until no message and no run waits for a time, by at most the limit or 366 days. Only with --virtual-time.',
      takes: { body: UntilIdleSchema },
      responses: { 200: PassedSchema },
      handle: runUntilIdle,
    },
  ];
}

/** Throws 400. */
async function membersOf(body: Call['body']): Promise<Record<string, unknown>> {
  return objectOf((await readJson(body, SMALL_JSON_LIMIT)) ?? {}, 'an object is needed');
}

/** Throws 400. */
function durationMs(member: string, value: unknown, time: VirtualTime): Millis {
  const ms = toDurationMs(value);
  if (ms === undefined) throw invalidBody(`${member} must be milliseconds, or a text such as "7d" or "1h30m"`);
  if (isDateMs(time.nowMs() + ms)) return ms;
  throw invalidBody(`${member} goes beyond all dates`);
}
