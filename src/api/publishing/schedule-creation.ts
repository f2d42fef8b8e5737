/**
 * Creates a schedule, or replaces the schedule with the same id, for the schedule routes and for publishes with a cron
 * expression (contract M 4.2, 22.13).
 */
import type { ScheduleCommand } from '../../engine/schedules/commands.ts';
import { ApiError, quotaExceeded } from '../../protocol/errors.ts';
import { prefixOf } from '../../protocol/options/dialect.ts';
import { readPublishOptions } from '../../protocol/options/options.ts';
import type { PublishOptions } from '../../protocol/options/settings.ts';
import { selectSavedHeaders } from '../../protocol/options/trigger-options.ts';
import type { Destination } from '../../protocol/urls/destination.ts';
import type { SplitQuery } from '../../protocol/urls/request-target.ts';
import { authorizeFully } from '../edge/authentication.ts';
import { messageLimit } from '../limits.ts';
import { type ApiResponse, jsonResponse } from '../response.ts';
import type { Call, Services } from '../route.ts';
import { checkAddress, checkCallbacks } from './destinations.ts';

type CreateSchedule = (call: Call, destination: Destination, queryConfig: SplitQuery['config']) => Promise<ApiResponse>;

export function scheduleCreation(services: Services): CreateSchedule {
  const { engine, checkDestination, clock, quotas, proxyHeaders, plainHeaders, limits } = services;
  const bodyLimit = messageLimit(limits.messageBytesMax);

  return async (call, destination, queryConfig) => {
    const { projectId, callerIp, rawHeaders, isTokenInHeader } = call;
    // The publish route accepts publish-only tokens, which must not replace a schedule.
    authorizeFully(call.scope);
    // A URL group need not exist yet: each trigger uses the endpoints that the group has then (contract M 15.3).
    if (destination.kind === 'url') await checkAddress(destination.url, checkDestination(projectId));
    const input = { rawHeaders, queryConfig, tokenInQuery: !isTokenInHeader, proxyHeaders, plainHeaders };
    const { cron, ...options } = readPublishOptions(input, 'schedule', quotas, clock.nowMs());
    if (cron === undefined) throw new Error('a schedule was read without its expression');
    await checkCallbacks(options.settings, checkDestination(projectId));
    const body = await call.body.read(bodyLimit);
    const command: ScheduleCommand = { destination, body, options: { ...options, cron } };
    if (callerIp !== undefined) command.callerIp = callerIp;
    if (destination.kind === 'group') command.kept = selectSavedHeaders(input);
    const created = await engine.createSchedule(projectId, command, limits.schedulesMax);
    if (created === 'tooMany') throw quotaExceeded('maxSchedules', limits.schedulesMax);
    return jsonResponse(200, created);
  };
}

/**
 * Throws `ApiError` 400 if the options have a cron expression. `where` ends the error text: the place that does not
 * support schedules.
 */
export function refuseCron({ cron, settings }: PublishOptions, where: string): void {
  if (cron === undefined) return;
  throw new ApiError('invalid_header', `${prefixOf(settings.dialect)}-Cron is not supported ${where}`);
}
