/** Messages that come by the clock (contract M 29.121 to 29.128). */
import { expect } from 'vitest';
import { eventually } from '../../support/eventually.ts';
import { type Section, statement } from '../support/statement.ts';
import type { ApiResponse, Subject } from '../support/subject.ts';

function ask(server: Subject, headers: Record<string, string>, to = '/a', body = ''): Promise<ApiResponse> {
  return server.ask('POST', `/v2/schedules/${server.destination(to)}`, { headers, body });
}

/** Makes a schedule and answers its id. */
async function make(server: Subject, headers: Record<string, string> = {}, to = '/a', body = ''): Promise<string> {
  const { status, json, text } = await ask(server, { 'Upstash-Cron': '* * * * *', ...headers }, to, body);
  expect(status, text).toBe(200);
  return json.scheduleId;
}

export const schedules: Section = {
  title: 'Schedules',
  statements: [
    statement('M121', 'A missing or malformed cron expression gets 400 with the documented text.', async (server) => {
      for (const headers of [{}, { 'Upstash-Cron': '61 * * * *' }, { 'Upstash-Cron': '* * * *' }]) {
        const { status, json } = await ask(server, headers);
        expect(status).toBe(400);
        expect(json.error).toMatch(/^Invalid cron expression ./);
      }
    }),

    statement(
      'M122',
      'A cron expression may name its time zone, and the next time is in that zone.',
      async (server) => {
        const id = await make(server, { 'Upstash-Cron': 'CRON_TZ=America/New_York 0 4 * * *' });
        const { nextScheduleTime } = await server.get(`/v2/schedules/${id}`);
        const inNewYork = new Intl.DateTimeFormat('en-GB', { timeZone: 'America/New_York', timeStyle: 'medium' });
        expect(inNewYork.format(nextScheduleTime)).toBe('04:00:00');
        const untilThenMs = nextScheduleTime - server.clock.nowMs();
        expect(untilThenMs).toBeGreaterThan(0);
        expect(untilThenMs).toBeLessThanOrEqual(25 * 3_600_000);
      },
    ),

    statement('M123', 'A schedule with an existing id replaces all of it, including the body.', async (server) => {
      const headers = { 'Upstash-Schedule-Id': 'mine' };
      await make(server, { ...headers, 'Upstash-Label': 'old', 'Upstash-Retries': '7' }, '/old', 'old body');
      await make(server, { ...headers, 'Upstash-Cron': '0 5 * * *' }, '/new');
      const [schedule, ...others] = await server.get('/v2/schedules');
      expect(others).toEqual([]);
      expect(schedule).toMatchObject({ scheduleId: 'mine', cron: '0 5 * * *', retries: 3 });
      expect(schedule.destination).toBe(server.destination('/new'));
      for (const name of ['body', 'label', 'labels']) expect(schedule, name).not.toHaveProperty(name);
    }),

    statement('M124', 'Spaces around a cron expression are removed.', async (server) => {
      const cron = encodeURIComponent('  */5 * * * *  ');
      const target = `/v2/schedules/${server.destination('/a')}?upstash-cron=${cron}`;
      const { scheduleId } = await server.post(target);
      expect((await server.get(`/v2/schedules/${scheduleId}`)).cron).toBe('*/5 * * * *');
    }),

    statement(
      'M125',
      'A schedule can be paused and resumed with PATCH and with POST, any number of times.',
      async (server) => {
        const id = await make(server);
        for (const method of ['PATCH', 'POST']) {
          for (const [verb, isPaused] of [
            ['pause', true],
            ['pause', true],
            ['resume', false],
            ['resume', false],
          ] as const) {
            expect((await server.ask(method, `/v2/schedules/${id}/${verb}`)).status).toBe(200);
            expect((await server.get(`/v2/schedules/${id}`)).isPaused).toBe(isPaused);
          }
        }
      },
    ),

    statement('M126', 'A destination that ends in /pause is treated as a destination.', async (server) => {
      const id = await make(server, {}, '/pause');
      expect(await server.get(`/v2/schedules/${id}`)).toMatchObject({
        destination: server.destination('/pause'),
        isPaused: false,
      });
    }),

    statement('M127', 'A due schedule publishes a message, and shows its outcome.', async (server) => {
      const id = await make(server, {}, '/a', 'hello');
      const { nextScheduleTime } = await server.get(`/v2/schedules/${id}`);
      server.clock.advanceTo(nextScheduleTime - 1);
      await server.quiet();
      expect(server.endpoint.to('/a')).toEqual([]);
      server.clock.advanceTo(nextScheduleTime);
      const { headers, body } = await server.endpoint.arrival('/a');
      expect([headers['upstash-schedule-id'], body.toString()]).toEqual([id, 'hello']);
      const messageId = String(headers['upstash-message-id']);
      await server.finished(messageId);
      expect((await server.logs(messageId))[0].scheduleId).toBe(id);
      const schedule = await eventually('the end of the message', async () => {
        const now = await server.get(`/v2/schedules/${id}`);
        return now.lastScheduleStates?.[messageId] === 'SUCCESS' && now;
      });
      expect(schedule.lastScheduleTime).toBe(nextScheduleTime);
      expect(schedule.nextScheduleTime).toBe(nextScheduleTime + 60_000);
    }),

    statement(
      'M128',
      'One schedule too many gets 412; replacing one at the limit works.',
      async (server) => {
        await make(server, { 'Upstash-Schedule-Id': 'mine' });
        const { status, json } = await ask(server, { 'Upstash-Cron': '* * * * *' });
        expect([status, json.error]).toEqual([412, 'quota maxSchedules exceeded, current limit: 1']);
        await make(server, { 'Upstash-Schedule-Id': 'mine', 'Upstash-Retries': '5' });
        expect((await server.get('/v2/schedules/mine')).retries).toBe(5);
      },
      { flags: ['--schedules-max', '1'] },
    ),
  ],
};
