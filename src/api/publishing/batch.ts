/** Publishes many messages in one request (contract M 22.3). An invalid item refuses the whole request. */

import type { Slices } from '../../engine/loops/slices.ts';
import type { PublishCommand, PublishOutcome } from '../../engine/messages/publish-command.ts';
import type { UrlGroup } from '../../engine/messages/url-groups.ts';
import type { Millis, ProjectId } from '../../engine/model.ts';
import { quotaExceeded } from '../../protocol/errors.ts';
import { checkNewName } from '../../protocol/names.ts';
import { readPublishOptions } from '../../protocol/options/options.ts';
import type { PlainHeaderPolicy } from '../../protocol/trace-context.ts';
import { messageLimit } from '../limits.ts';
import { bodyTooLarge } from '../requests/request-body.ts';
import { errorAtItem, type RequestItem } from '../requests/request-items.ts';
import type { ApiResponse } from '../response.ts';
import { type Call, type CheckDestination, type Route, row, type Services } from '../route.ts';
import { completeRunPublish, refuseRun } from '../runs/run-publish.ts';
import { BatchItemsSchema, BatchSchema } from '../schemas.ts';
import { handleItems } from './batch-items.ts';
import { ENQUEUE_HEADERS, PUBLISH_HEADERS } from './config-headers.ts';
import { checkAddress, checkCallbacks, checkEndpoints, groupNotFound } from './destinations.ts';
import { GroupBudget, groupCommands } from './group-publish.ts';
import { KnownHeaders } from './ignored.ts';
import { publishedJson, publishedListJson } from './publish.ts';
import { refuseCron } from './schedule-creation.ts';

const PUBLISH_KNOWN_HEADERS = new KnownHeaders(PUBLISH_HEADERS);
const ENQUEUE_KNOWN_HEADERS = new KnownHeaders(ENQUEUE_HEADERS);

/** The data that all items of a request share. */
interface ItemContext {
  /** URL groups by name. */
  groups: ReadonlyMap<string, UrlGroup>;
  budget: GroupBudget;
  nowMs: Millis;
  callerIp: string | undefined;
  plainHeaders: PlainHeaderPolicy;
}

/** A validated item: one message, the messages of a URL group, or a refusal of this item alone. */
type Item =
  | { kind: 'message'; isSentByRun: boolean; commands: [PublishCommand] }
  | { kind: 'group'; group: UrlGroup; commands: PublishCommand[] }
  | { kind: 'refused'; error: string; commands: [] };

export function batchRoutes(services: Services): Route[] {
  const { engine, checkDestination, clock, quotas, proxyHeaders, plainHeaders, limits } = services;
  const itemLimit = messageLimit(limits.messageBytesMax);

  function publishAll(call: Call): Promise<ApiResponse> {
    const { projectId, callerIp, body, ignored, rawHeaders } = call;
    const check = checkDestination(projectId);
    const shared = { callerIp, plainHeaders: { ...plainHeaders, requestHeaders: rawHeaders } };
    return handleItems(body, services, true, async (requestItems, slices) => {
      const groups = await findGroups(projectId, requestItems);
      const context: ItemContext = { groups, budget: new GroupBudget(limits), nowMs: clock.nowMs(), ...shared };
      const items: Item[] = [];
      const refusals: Promise<unknown>[] = [];
      for (const [index, requestItem] of requestItems.entries()) {
        (requestItem.queue === '' ? PUBLISH_KNOWN_HEADERS : ENQUEUE_KNOWN_HEADERS).findIgnored(
          requestItem.rawHeaders,
          ignored,
          index,
        );
        const item = await readItem(requestItem, context).catch((error) => Promise.reject(errorAtItem(index, error)));
        items.push(item);
        refusals.push(refusalOf(item, index, check));
        if (slices.isOver) await slices.next();
      }
      const refusal = (await Promise.all(refusals)).find((error) => error !== undefined);
      if (refusal !== undefined) throw refusal;
      const commands = items.flatMap((item): PublishCommand[] => item.commands);
      const outcomes = await engine.publish(projectId, commands, call);
      return { status: 200, json: await responseJson(items, outcomes, limits.queuesMax, slices) };
    });
  }

  /**
   * The error if the item's destination or callbacks are refused, otherwise `undefined`. Host names are resolved while
   * further items are read.
   */
  async function refusalOf(item: Item, index: number, check: CheckDestination): Promise<unknown> {
    // A message of a running workflow is accepted with a destination that is not allowed, and fails at delivery.
    if (item.kind === 'message' && item.isSentByRun) return undefined;
    try {
      if (item.kind === 'message') await checkAddress(item.commands[0].url, check);
      else if (item.kind === 'group') await checkEndpoints(item.group.endpoints, check);
      const [first] = item.commands; // a group's messages have the same callbacks
      if (first) await checkCallbacks(first.options.settings, check);
      return undefined;
    } catch (error) {
      return errorAtItem(index, error);
    }
  }

  /** The existing URL groups among the destinations, by name. */
  async function findGroups(
    projectId: ProjectId,
    requestItems: readonly RequestItem[],
  ): Promise<Map<string, UrlGroup>> {
    const names = new Set(
      requestItems.flatMap(({ destination }) => (destination.kind === 'group' ? [destination.name] : [])),
    );
    const groups = await Promise.all(
      [...names].map((name) => engine.storeOf(projectId).urlGroups.findUrlGroup({ name })),
    );
    return new Map(groups.flatMap((group) => (group ? [[group.name, group]] : [])));
  }

  async function readItem(requestItem: RequestItem, context: ItemContext): Promise<Item> {
    const { destination, body, queue, rawHeaders, isSentByRun } = requestItem;
    const { groups, budget, nowMs, callerIp, plainHeaders } = context;
    const group = destination.kind === 'group' ? groups.get(destination.name) : undefined;
    // The item inherits the trace of the batch request, but neither its headers nor its token. The `Authorization` header
    // of the item is forwarded.
    const source = { rawHeaders, queryConfig: [], tokenInQuery: true, proxyHeaders, plainHeaders };
    const input = { ...source, groupDefaults: group?.headers };
    const options = readPublishOptions(input, queue === '' ? 'publish' : 'enqueue', quotas, nowMs);
    if (queue !== '') checkNewName('queue name', queue);
    refuseCron(options, 'in a batch');
    if (destination.kind === 'group') refuseRun(options, 'for URL groups');
    if (queue !== '') options.settings.queueName = queue;
    if (body.length > itemLimit.bytesMax) throw bodyTooLarge(itemLimit);
    const shared: Omit<PublishCommand, 'url'> = { body, options };
    if (callerIp !== undefined) shared.callerIp = callerIp;
    if (destination.kind === 'url') {
      const command = await completeRunPublish({ ...shared, url: destination.url }, services, nowMs);
      return { kind: 'message', isSentByRun, commands: [command] };
    }
    if (group) return { kind: 'group', group, commands: groupCommands(group, shared, budget) };
    return { kind: 'refused', error: groupNotFound(destination.name).message, commands: [] };
  }

  return [
    {
      ...row('publish', 'POST', '/v2/batch', 'publishBatch'),
      summary: 'Publishes several messages in one request.',
      takes: { body: BatchItemsSchema },
      refusals: [412, 422],
      responses: { 200: BatchSchema },
      handle: publishAll,
    },
  ];
}

async function responseJson(
  items: readonly Item[],
  outcomes: readonly PublishOutcome[],
  queuesMax: number,
  slices: Slices,
): Promise<string> {
  let next = 0;
  const elements = await slices.map(items, (item) => {
    const start = next;
    next += item.commands.length;
    return itemJson(item, outcomes.slice(start, next), queuesMax);
  });
  return `[${elements.join(',')}]`;
}

function itemJson(item: Item, outcomes: readonly PublishOutcome[], queuesMax: number): string {
  if (item.kind === 'refused') return JSON.stringify({ error: item.error });
  const published = outcomes.filter((outcome) => outcome !== 'tooManyQueues');
  // All messages of an item go into the same queue: the item is refused as a whole, and other items are not.
  if (outcomes.includes('tooManyQueues')) {
    return JSON.stringify({ error: quotaExceeded('maxQueues', queuesMax).message });
  }
  const [first] = published;
  if (!first || published.length < item.commands.length) {
    throw new Error('the engine returned fewer messages than it was given');
  }
  return item.kind === 'group' ? publishedListJson(published) : publishedJson(first);
}
