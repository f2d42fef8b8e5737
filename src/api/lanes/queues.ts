/** Creates, changes, reads, pauses and deletes queues (contract M 14, 22.7 to 22.12). */
import { Type } from '@sinclair/typebox';
import type { Queue } from '../../engine/lanes/lanes.ts';
import type { ProjectId } from '../../engine/model.ts';
import { ApiError, invalidBody, quotaExceeded } from '../../protocol/errors.ts';
import { objectOf } from '../../protocol/json-objects.ts';
import { checkName, checkNewName } from '../../protocol/names.ts';
import { SMALL_JSON_LIMIT } from '../limits.ts';
import { readJson } from '../requests/json-body.ts';
import { amount, readQuery, text } from '../requests/parameters.ts';
import { type ApiResponse, jsonResponse, NO_BODY } from '../response.ts';
import { type Call, type Route, row, type Services } from '../route.ts';
import { AtLeastOne, BLOCKER, Ms, QueueSettingsSchema, shapeOf, Text } from '../schemas.ts';

const PARALLELISM_DEFAULT = 1;

/**
 * Our own addition. The response is a bare array without a cursor (contract M 22.8), so the next page is requested with
 * the last name of this page.
 */
const LIST_QUERY = [
  text('after', 'Only queues whose names sort after this one.'),
  amount('count', 'Maximum number; all by default.'),
];

/** The first six members are always present, because clients require them. The last is our own addition. */
const QUEUE = shapeOf<[Queue]>()(
  {
    name: [Text, ({ name }) => name],
    createdAt: [Ms, ({ createdAtMs }) => createdAtMs],
    updatedAt: [Ms, ({ updatedAtMs }) => updatedAtMs],
    parallelism: [AtLeastOne, ({ parallelism }) => parallelism],
    paused: [Type.Boolean(), ({ isPaused }) => isPaused],
    lag: [
      Type.Integer({ minimum: 0, description: 'messages that are not finished, running ones included' }),
      ({ lag }) => lag,
    ],
    blockedBy: [Type.Optional(BLOCKER.schema), ({ blockedBy }) => blockedBy && BLOCKER.view(blockedBy)],
  },
  'Queue',
);

interface QueueSettings {
  name: string;
  parallelism: number;
  isPaused: boolean;
}

export function queueRoutes({ engine, limits }: Services): Route[] {
  const { storeOf } = engine;

  const { queuesMax, queueParallelismMax } = limits;

  async function save({ projectId, body }: Call): Promise<ApiResponse> {
    const settings = settingsOf(await readJson(body, SMALL_JSON_LIMIT));
    await checkParallelism(projectId, settings);
    if ((await storeOf(projectId).queues.saveQueue(settings)) === 'tooManyQueues')
      throw quotaExceeded('maxQueues', queuesMax);
    return NO_BODY;
  }

  /**
   * The quota refuses only growth: after the quota is lowered, an older queue can still be saved unchanged
   * (contract M 20.1).
   */
  async function checkParallelism(projectId: ProjectId, { name, parallelism }: QueueSettings): Promise<void> {
    if (queueParallelismMax === 0 || parallelism <= queueParallelismMax) return;
    const queue = await storeOf(projectId).queues.findQueue({ name });
    if (!queue || queue.parallelism < parallelism) throw quotaExceeded('maxQueueParallelism', queueParallelismMax);
  }

  async function list({ projectId, rawQuery }: Call): Promise<ApiResponse> {
    const page = readQuery(rawQuery, LIST_QUERY);
    return jsonResponse(200, (await storeOf(projectId).queues.listQueues(page)).map(QUEUE.view));
  }

  async function get({ projectId, id: name }: Call): Promise<ApiResponse> {
    checkName('queue name', name);
    const queue = await storeOf(projectId).queues.findQueue({ name });
    if (!queue) throw notFound(name);
    return jsonResponse(200, QUEUE.view(queue));
  }

  async function drop({ projectId, id: name }: Call): Promise<ApiResponse> {
    checkName('queue name', name);
    await engine.deleteQueue(projectId, name);
    return NO_BODY;
  }

  async function setPaused({ projectId, id: name }: Call, isPaused: boolean): Promise<ApiResponse> {
    checkName('queue name', name);
    if ((await storeOf(projectId).queues.setQueuePaused({ name, isPaused })) === 'missing') throw notFound(name);
    return NO_BODY;
  }

  const queuePath = '/v2/queues/:queueName';
  const invalidName = { refusals: [400] };
  return [
    {
      ...row('full', 'POST', '/v2/queues', 'saveQueue'),
      summary: 'Creates a queue or replaces its settings. Omitted settings get their defaults.',
      takes: { body: QueueSettingsSchema },
      refusals: [412],
      handle: save,
    },
    {
      ...row('read', 'GET', '/v2/queues', 'listQueues'),
      summary: 'Lists the queues by name.',
      takes: { query: LIST_QUERY },
      responses: { 200: Type.Array(QUEUE.schema) },
      handle: list,
    },
    {
      ...invalidName,
      ...row('read', 'GET', queuePath, 'getQueue'),
      summary: 'Reads one queue.',
      responses: { 200: QUEUE.schema },
      handle: get,
    },
    {
      ...row('full', 'DELETE', queuePath, 'deleteQueue'),
      ...invalidName,
      summary: 'Deletes a queue, if it exists, and cancels its messages.',
      handle: drop,
    },
    {
      ...row('full', 'POST', `${queuePath}/pause`, 'pauseQueue'),
      ...invalidName,
      summary: 'Pauses a queue: it still accepts messages, but starts none.',
      handle: (call) => setPaused(call, true),
    },
    {
      ...row('full', 'POST', `${queuePath}/resume`, 'resumeQueue'),
      ...invalidName,
      summary: 'Resumes a paused queue from its earliest undelivered message.',
      handle: (call) => setPaused(call, false),
    },
  ];
}

/** Both settings are replaced: an absent or null setting gets its default. Throws 400. */
function settingsOf(body: unknown): QueueSettings {
  const { queueName, parallelism, paused } = objectOf(body, 'an object is needed');
  if (typeof queueName !== 'string') throw invalidBody('queueName must be a string');
  checkNewName('queue name', queueName);
  return { name: queueName, parallelism: parallelismOf(parallelism), isPaused: pausedOf(paused) };
}

function parallelismOf(value: unknown): number {
  if (value === undefined || value === null) return PARALLELISM_DEFAULT;
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= 1) return value;
  throw invalidBody('parallelism must be a whole number of at least 1');
}

function pausedOf(value: unknown): boolean {
  if (value === undefined || value === null) return false;
  if (typeof value === 'boolean') return value;
  throw invalidBody('paused must be true or false');
}

function notFound(name: string): ApiError {
  return new ApiError('not_found', `queue ${name} not found`);
}
