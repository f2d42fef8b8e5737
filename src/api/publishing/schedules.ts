/** Creates, reads, pauses, resumes and deletes schedules (contract M 15, 22.13 to 22.17). */

import { ApiError } from '../../protocol/errors.ts';
import { readDestination } from '../../protocol/urls/destination.ts';
import { splitQuery } from '../../protocol/urls/request-target.ts';
import { scheduleView } from '../messages/views.ts';
import { type ApiResponse, jsonResponse, NO_BODY } from '../response.ts';
import { type Call, type Route, row, type Services } from '../route.ts';
import { ScheduleCreatedSchema, ScheduleListSchema, ScheduleSchema } from '../schemas.ts';
import { SCHEDULE_HEADERS } from './config-headers.ts';
import { scheduleCreation } from './schedule-creation.ts';

export function scheduleRoutes(services: Services): Route[] {
  const { engine } = services;
  const { storeOf } = engine;
  const createSchedule = scheduleCreation(services);

  function create(call: Call): Promise<ApiResponse> {
    const query = splitQuery(call.rawQuery);
    return createSchedule(call, readDestination(call.rawDestination, query.rest), query.config);
  }

  async function list({ projectId }: Call): Promise<ApiResponse> {
    return jsonResponse(200, (await storeOf(projectId).schedules.listSchedules()).map(scheduleView));
  }

  async function get({ projectId, id }: Call): Promise<ApiResponse> {
    const view = await storeOf(projectId).schedules.findSchedule({ id });
    if (!view) throw notFound(id);
    return jsonResponse(200, scheduleView(view));
  }

  async function drop({ projectId, id }: Call): Promise<ApiResponse> {
    await storeOf(projectId).schedules.deleteSchedule({ id });
    return NO_BODY;
  }

  /** Official clients send PATCH; the documentation of QStash says POST. */
  function pauseRoutes(word: 'pause' | 'resume', summary: string): Route[] {
    const handle = async ({ projectId, id }: Call): Promise<ApiResponse> => {
      if ((await engine.setSchedulePaused(projectId, id, word === 'pause')) === 'missing') throw notFound(id);
      return NO_BODY;
    };
    const path = `/v2/schedules/:scheduleId/${word}`;
    return [
      { ...row('full', 'PATCH', path, `${word}Schedule`), summary, handle },
      { ...row('full', 'POST', path, `${word}ScheduleByPost`), summary, handle },
    ];
  }

  return [
    {
      ...row('full', 'POST', '/v2/schedules/*', 'createSchedule'),
      summary: 'Creates a schedule for the URL or URL group in the path, or replaces the schedule with its id.',
      takes: { configHeaders: SCHEDULE_HEADERS, body: 'bytes' },
      responses: { 200: ScheduleCreatedSchema },
      handle: create,
    },
    {
      ...row('read', 'GET', '/v2/schedules', 'listSchedules'),
      isLong: true,
      summary: 'Lists the schedules in order of creation. Bodies beyond the first 16 MiB are omitted.',
      responses: { 200: ScheduleListSchema },
      handle: list,
    },
    {
      ...row('read', 'GET', '/v2/schedules/:scheduleId', 'getSchedule'),
      isLong: true,
      summary: 'Reads one schedule.',
      responses: { 200: ScheduleSchema },
      handle: get,
    },
    {
      ...row('full', 'DELETE', '/v2/schedules/:scheduleId', 'deleteSchedule'),
      summary: 'Deletes a schedule. The messages that it has published are still delivered.',
      handle: drop,
    },
    ...pauseRoutes('pause', 'Pauses a schedule: its times pass without a message.'),
    ...pauseRoutes('resume', 'Resumes a schedule at its next time.'),
  ];
}

function notFound(id: string): ApiError {
  return new ApiError('not_found', `schedule ${id} not found`);
}
