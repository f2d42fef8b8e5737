/**
 * Publishes one message, or one for each endpoint of a URL group, directly or to a queue (contract M 22.1, 22.2). This is
 * the hot path of the API.
 */
import type { PublishCommand, Published, PublishOutcome } from '../../engine/messages/publish-command.ts';
import { quotaExceeded } from '../../protocol/errors.ts';
import { checkNewName } from '../../protocol/names.ts';
import { readPublishOptions } from '../../protocol/options/options.ts';
import type { HeaderMap, PublishOptions } from '../../protocol/options/settings.ts';
import { readDestination } from '../../protocol/urls/destination.ts';
import { maskPassword } from '../../protocol/urls/masked-url.ts';
import { type SplitQuery, splitQuery } from '../../protocol/urls/request-target.ts';
import { isSentByRun, isSentBySdk, toRunPublishError } from '../../protocol/workflow/run-errors.ts';
import { messageLimit } from '../limits.ts';
import type { ApiResponse } from '../response.ts';
import { type Call, type Route, row, type Services } from '../route.ts';
import { completeRunPublish, refuseRun } from '../runs/run-publish.ts';
import { PublishSchema } from '../schemas.ts';
import { ENQUEUE_HEADERS, PUBLISH_HEADERS } from './config-headers.ts';
import { checkAddress, checkCallbacks, checkEndpoints, groupNotFound } from './destinations.ts';
import { GroupBudget, groupCommands } from './group-publish.ts';
import { scheduleCreation } from './schedule-creation.ts';

type QueryConfig = SplitQuery['config'];

export function publishRoutes(services: Services): Route[] {
  const { engine, checkDestination, clock, quotas, proxyHeaders, plainHeaders, limits } = services;
  const bodyLimit = messageLimit(limits.messageBytesMax);
  const createSchedule = scheduleCreation(services);

  async function enqueue(call: Call): Promise<ApiResponse> {
    checkNewName('queue name', call.id);
    return publish(call, call.id);
  }

  async function publish(call: Call, queueName?: string): Promise<ApiResponse> {
    const { rawHeaders, callerIp } = call;
    let isOfRun = isSentByRun({ rawHeaders, queryConfig: [] });
    try {
      const { config, rest } = splitQuery(call.rawQuery);
      isOfRun ||= isSentByRun({ rawHeaders: [], queryConfig: config });
      // Checked before the body is read, so that a refusal costs little. A message that continues a run is never refused
      // here.
      if (!isOfRun && !isSentBySdk({ rawHeaders, queryConfig: config })) engine.checkAdmission(call.projectId);
      const destination = readDestination(call.rawDestination, rest);
      // Order of the checks: destination, headers, body (contract M 25).
      if (destination.kind === 'group') return await publishToGroup(call, destination.name, config, queueName);
      const { url } = destination;
      // A message of a running workflow is accepted with a destination that is not allowed, and fails at delivery.
      const addressCheck = isOfRun ? undefined : checkAddress(url, checkDestination(call.projectId));
      if (addressCheck !== undefined) await addressCheck;
      const options = readOptions(call, config, queueName);
      if (options.cron !== undefined) return await createSchedule(call, destination, config);
      const callbackCheck = isOfRun ? undefined : checkCallbacks(options.settings, checkDestination(call.projectId));
      if (callbackCheck !== undefined) await callbackCheck;
      const command: PublishCommand = { url, body: await call.body.read(bodyLimit), options };
      if (callerIp !== undefined) command.callerIp = callerIp;
      const completed = completeRunPublish(command, services, clock.nowMs());
      const commands = [completed instanceof Promise ? await completed : completed];
      const outcomes = await engine.publish(call.projectId, commands, call);
      const [published] = publishedOf(outcomes);
      if (!published) throw new Error('the engine returned nothing for a publish');
      return { status: published.deduplicated ? 202 : 200, json: publishedJson(published) };
    } catch (error) {
      throw isOfRun ? toRunPublishError(error) : error;
    }
  }

  async function publishToGroup(
    call: Call,
    name: string,
    queryConfig: QueryConfig,
    queueName: string | undefined,
  ): Promise<ApiResponse> {
    const { projectId, callerIp } = call;
    const group = await engine.storeOf(projectId).urlGroups.findUrlGroup({ name });
    if (group) await checkEndpoints(group.endpoints, checkDestination(projectId));
    const options = readOptions(call, queryConfig, queueName, group?.headers);
    refuseRun(options, 'for URL groups');
    // A group that is missing now may exist when the schedule triggers.
    if (options.cron !== undefined) return createSchedule(call, { kind: 'group', name }, queryConfig);
    await checkCallbacks(options.settings, checkDestination(projectId));
    if (!group) throw groupNotFound(name);
    const shared: Omit<PublishCommand, 'url'> = { body: await call.body.read(bodyLimit), options };
    if (callerIp !== undefined) shared.callerIp = callerIp;
    const commands = groupCommands(group, shared, new GroupBudget(limits));
    const published = publishedOf(await engine.publish(projectId, commands, call));
    const isRepeated = published.every(({ deduplicated }) => deduplicated);
    return { status: isRepeated ? 202 : 200, json: publishedListJson(published) };
  }

  function publishedOf(outcomes: readonly PublishOutcome[]): Published[] {
    return outcomes.map((outcome) => {
      if (outcome === 'tooManyQueues') throw quotaExceeded('maxQueues', limits.queuesMax);
      return outcome;
    });
  }

  function readOptions(
    call: Call,
    queryConfig: QueryConfig,
    queueName: string | undefined,
    groupDefaults?: HeaderMap,
  ): PublishOptions {
    const { rawHeaders, isTokenInHeader } = call;
    const tokenInQuery = !isTokenInHeader;
    const input = { rawHeaders, queryConfig, tokenInQuery, proxyHeaders, plainHeaders, groupDefaults };
    const context = queueName === undefined ? 'publish' : 'enqueue';
    const options = readPublishOptions(input, context, quotas, clock.nowMs());
    if (queueName !== undefined) options.settings.queueName = queueName;
    return options;
  }

  return [
    {
      ...row('publish', 'POST', '/v2/publish/*', 'publish'),
      summary:
        'Publishes a message to the URL, or to the URL group, in the path; with a cron expression, creates a schedule.',
      takes: { configHeaders: PUBLISH_HEADERS, body: 'bytes' },
      refusals: [404, 422],
      responses: { 200: PublishSchema, 202: PublishSchema },
      handle: (call) => publish(call),
    },
    {
      ...row('publish', 'POST', '/v2/enqueue/:queueName/*', 'enqueue'),
      summary: 'Enqueues a message for the URL in the path, or one for each endpoint of the URL group.',
      takes: { configHeaders: ENQUEUE_HEADERS, body: 'bytes' },
      refusals: [404, 412],
      responses: { 200: PublishSchema, 202: PublishSchema },
      handle: enqueue,
    },
  ];
}

/** The object of contract M 22.1. Ids are plain ASCII without quotes, so only the URL needs escaping. */
export function publishedJson({ messageId, url, deduplicated, state }: Published): string {
  const stateJson = state === undefined ? '' : `,"state":"${state}"`;
  const suffix = deduplicated ? `,"deduplicated":true${stateJson}}` : '}';
  return `{"messageId":"${messageId}","url":${JSON.stringify(maskPassword(url))}${suffix}`;
}

/** The response for a URL group: an array in the order of its endpoints, even for a single endpoint (contract M 5.3). */
export function publishedListJson(published: readonly Published[]): string {
  return `[${published.map(publishedJson).join(',')}]`;
}
