/** The dead letter queue: list, read, delete and retry its entries (contract M 17, 22.24 to 22.29). */
import { Type } from '@sinclair/typebox';
import type { DeadRetryOverride } from '../engine/messages/dead-retry.ts';
import type { ProjectId } from '../engine/model.ts';
import type { Page } from '../engine/page.ts';
import type { DeadMessage } from '../engine/stores.ts';
import { STALE, untilCurrent } from '../engine/until-current.ts';
import { ApiError } from '../protocol/errors.ts';
import { type Answer, answer, NO_BODY } from './answer.ts';
import { RETRY_HEADERS } from './config-headers.ts';
import { type Amount, type Filters, messageFilters, readFilters } from './filters.ts';
import { readJson } from './json-body.ts';
import { PAGE_BODY_BYTES_MAX, SMALL_JSON_LIMIT } from './limits.ts';
import { parameter, readQuery, singleValue } from './parameters.ts';
import { readRetryOverride } from './retry-override.ts';
import { type Call, type Route, row, type Services } from './route.ts';
import { listDeadRuns } from './run-dlq.ts';
import { deadParameters } from './run-filters.ts';
import { DeadRunListSchema, DeadRunSchema } from './run-schemas.ts';
import { DeadListSchema, DeadMessageSchema, DeletedSchema, RetriedManySchema, RetriedSchema } from './schemas.ts';
import { deadMessageView, deadRunView } from './views.ts';

const SOURCE = parameter(
  'source',
  'workflow: lists workflow runs that have failed, by the filters of /v2/workflows/dlq.',
  Type.Literal('workflow'),
  (given) => singleValue('source', given),
);

const AMOUNT: Amount = { countDefault: 100, countMax: 100 };
const LISTED = messageFilters('dlqList', AMOUNT);
const BULK = messageFilters('dlqBulk', AMOUNT);

/** Filters that only the list of runs has. */
const OF_RUNS = deadParameters(AMOUNT).filter(({ name }) => !LISTED.rows.some((row) => row.name === name));

export function dlqRoutes(services: Services): Route[] {
  const { engine } = services;
  const { storeOf } = engine;

  async function list(call: Call): Promise<Answer> {
    const { projectId, rawQuery } = call;
    if (readQuery(rawQuery, [SOURCE]).source === 'workflow') return listDeadRuns(engine, call);
    const filters = readFilters(LISTED, rawQuery);
    const page = filters.ids ? { items: await findAll(projectId, filters.ids) } : await select(projectId, filters);
    return answer(200, { messages: page.items.map(deadMessageView), cursor: page.cursor });
  }

  async function get({ projectId, id }: Call): Promise<Answer> {
    const dead = await storeOf(projectId).dead.findDead({ dlqId: id });
    if (dead) return answer(200, deadMessageView(dead));
    // A caller with a DLQ id need not know whether it names a message or a run.
    const [run] = await storeOf(projectId).deadRuns.findDeadRuns({ dlqIds: [id] });
    if (!run) throw notFound(id);
    return answer(200, deadRunView(run));
  }

  async function deleteOne({ projectId, id }: Call): Promise<Answer> {
    if ((await storeOf(projectId).dead.deleteDead({ dlqIds: [id] })) === 0) throw notFound(id);
    return NO_BODY;
  }

  async function deleteMany(call: Call): Promise<Answer> {
    const { projectId } = call;
    const filters = await readBulk(call);
    if (filters.ids) return answer(200, { deleted: await storeOf(projectId).dead.deleteDead({ dlqIds: filters.ids }) });
    const page = await select(projectId, filters);
    return answer(200, {
      deleted: await storeOf(projectId).dead.deleteDead({ dlqIds: idsOf(page) }),
      cursor: page.cursor,
    });
  }

  async function retryOne(call: Call): Promise<Answer> {
    const { projectId, id } = call;
    const messageIds = await engine.retryDead(projectId, [id], await readRetryOverride(call, services));
    const [messageId] = messageIds ?? [];
    if (messageId === undefined) throw notFound(id);
    return answer(201, { messageId });
  }

  async function retryMany(call: Call): Promise<Answer> {
    const override = await readRetryOverride(call, services);
    const filters = await readBulk(call);
    const { messageIds, cursor } = filters.ids
      ? { messageIds: await retryAll(call.projectId, filters.ids, override), cursor: undefined }
      : await retryMatching(call.projectId, filters, override);
    return answer(201, { cursor: cursor ?? '', responses: messageIds.map((messageId) => ({ messageId })) });
  }

  /** All or none, so that a caller learns when an entry that it named is gone. */
  async function retryAll(projectId: ProjectId, ids: string[], override: DeadRetryOverride): Promise<string[]> {
    if (ids.length === 0) return [];
    const messageIds = await engine.retryDead(projectId, ids, override);
    if (!messageIds)
      throw new ApiError('not_found', `dlq message not found: at least one of ${ids.length} ids is gone`);
    return messageIds;
  }

  async function retryMatching(
    projectId: ProjectId,
    filters: Filters,
    override: DeadRetryOverride,
  ): Promise<{ messageIds: string[]; cursor?: string | undefined }> {
    return untilCurrent('the choice of entries', async () => {
      const page = await select(projectId, filters);
      const messageIds = page.items.length === 0 ? [] : await engine.retryDead(projectId, idsOf(page), override);
      return messageIds ? { messageIds, cursor: page.cursor } : STALE;
    });
  }

  function select(projectId: ProjectId, { attributes, count = AMOUNT.countMax, cursor, order }: Filters) {
    const request = cursor === undefined ? { count, order } : { count, order, cursor };
    return storeOf(projectId).dead.listDead({ filter: attributes, page: request });
  }

  /** Newest first, like every list of the DLQ. */
  async function findAll(projectId: ProjectId, ids: string[]): Promise<DeadMessage[]> {
    const found: DeadMessage[] = [];
    let bytes = 0;
    for (const id of ids) {
      const dead = await storeOf(projectId).dead.findDead({ dlqId: id });
      if (!dead) continue;
      found.push(dead);
      bytes += bodyBytesOf(dead);
      if (bytes > PAGE_BODY_BYTES_MAX) {
        throw new ApiError('invalid_query', 'invalid query parameter dlqIds: too much for one answer, ask for fewer');
      }
    }
    return found.sort(newestFirst);
  }

  return [
    {
      ...row('read', 'GET', '/v2/dlq', 'listDlqMessages'),
      isLong: true,
      summary: 'Lists dead messages, newest first.',
      takes: { filters: LISTED, query: [SOURCE, ...OF_RUNS] },
      answers: { 200: Type.Union([DeadListSchema, DeadRunListSchema]) },
      handle: list,
    },
    {
      ...row('full', 'DELETE', '/v2/dlq', 'deleteDlqMessages'),
      summary: 'Deletes the dead messages that match filters, all without a filter.',
      takes: { filters: BULK },
      answers: { 200: DeletedSchema },
      handle: deleteMany,
    },
    {
      ...row('full', 'POST', '/v2/dlq/retry', 'retryDlqMessages'),
      summary: 'Publishes the dead messages that match filters anew.',
      takes: { filters: BULK, configHeaders: RETRY_HEADERS },
      refusals: [404],
      answers: { 201: RetriedManySchema },
      handle: retryMany,
    },
    {
      ...row('full', 'POST', '/v2/dlq/retry/:dlqId', 'retryDlqMessage'),
      summary: 'Publishes a dead message anew and removes it from the DLQ.',
      takes: { configHeaders: RETRY_HEADERS },
      answers: { 201: RetriedSchema },
      handle: retryOne,
    },
    {
      ...row('read', 'GET', '/v2/dlq/:dlqId', 'getDlqMessage'),
      isLong: true,
      summary: 'Reads a dead message.',
      answers: { 200: Type.Union([DeadMessageSchema, DeadRunSchema]) },
      handle: get,
    },
    {
      ...row('full', 'DELETE', '/v2/dlq/:dlqId', 'deleteDlqMessage'),
      summary: 'Deletes a dead message.',
      handle: deleteOne,
    },
  ];
}

async function readBulk({ body, rawQuery }: Call): Promise<Filters> {
  return readFilters(BULK, rawQuery, await readJson(body, SMALL_JSON_LIMIT));
}

function idsOf(page: Page<DeadMessage>): string[] {
  return page.items.map(({ dlqId }) => dlqId);
}

function bodyBytesOf({ message, deadLetter }: DeadMessage): number {
  return message.body.length + deadLetter.responseBody.length;
}

function newestFirst(a: DeadMessage, b: DeadMessage): number {
  return b.deadLetter.failedAtMs - a.deadLetter.failedAtMs || b.message.key - a.message.key;
}

function notFound(dlqId: string): ApiError {
  return new ApiError('not_found', `dlq message ${dlqId} not found`);
}
