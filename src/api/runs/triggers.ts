/**
 * Starts workflow runs for clients without the workflow protocol. This code and the engine add the data that the protocol
 * requires (contract W 5.2, 5.3).
 */
import type { PublishCommand, PublishOutcome } from '../../engine/messages/publish-command.ts';
import type { Millis } from '../../engine/model.ts';
import { ApiError, invalidBody, quotaExceeded } from '../../protocol/errors.ts';
import { type OptionsInput, readPublishOptions } from '../../protocol/options/options.ts';
import type { PlainHeaderPolicy } from '../../protocol/trace-context.ts';
import { type Destination, readDestination } from '../../protocol/urls/destination.ts';
import { splitQuery } from '../../protocol/urls/request-target.ts';
import { isSentBySdk } from '../../protocol/workflow/run-errors.ts';
import { messageLimit } from '../limits.ts';
import { handleItems } from '../publishing/batch-items.ts';
import { TRIGGER_HEADERS } from '../publishing/config-headers.ts';
import { checkAddress, checkCallbacks } from '../publishing/destinations.ts';
import { KnownHeaders } from '../publishing/ignored.ts';
import { bodyTooLarge } from '../requests/request-body.ts';
import { errorAtItem, type RequestItem, readAt } from '../requests/request-items.ts';
import { type ApiResponse, jsonResponse } from '../response.ts';
import { type Call, type CheckDestination, type Route, row, type Services } from '../route.ts';
import { TriggeredListSchema, TriggeredSchema, TriggerItemsSchema } from '../schemas.ts';

const KNOWN_HEADERS = new KnownHeaders(TRIGGER_HEADERS);

/** A run in the response. */
interface TriggeredRun {
  workflowRunId: string;
  workflowCreatedAt: Millis;
  /** Whether a run with this id was already active. The response then names the active run. */
  deduplicated: boolean;
}

export function triggerRoutes(services: Services): Route[] {
  const { engine, checkDestination, clock, quotas, proxyHeaders, plainHeaders, limits } = services;
  const bodyLimit = messageLimit(limits.messageBytesMax);

  async function trigger(call: Call): Promise<ApiResponse> {
    const { rawQuery, rawDestination, rawHeaders } = call;
    const query = splitQuery(rawQuery);
    if (!isSentBySdk({ rawHeaders, queryConfig: query.config })) engine.checkAdmission(call.projectId);
    const url = workflowUrlOf(readDestination(rawDestination, query.rest));
    const check = checkDestination(call.projectId);
    await checkAddress(url, check);
    const input = { rawHeaders, queryConfig: query.config, tokenInQuery: !call.isTokenInHeader, plainHeaders };
    const command = readCommand(url, input, call.callerIp, clock.nowMs());
    await checkCallbacks(command.options.settings, check);
    const body = await call.body.read(bodyLimit);
    const [triggered] = await publishAll(call, [{ ...command, body }]);
    const { deduplicated, ...run } = triggered ?? missing();
    return jsonResponse(200, deduplicated ? { ...run, deduplicated } : run);
  }

  function triggerAll(call: Call): Promise<ApiResponse> {
    const { body, callerIp, ignored, rawHeaders } = call;
    const plain = { ...plainHeaders, requestHeaders: rawHeaders };
    return handleItems(body, services, false, async (given, slices) => {
      const nowMs = clock.nowMs();
      const commands = await slices.map(given, (item, index) => {
        KNOWN_HEADERS.findIgnored(item.rawHeaders, ignored, index);
        return readAt(index, () => readItem(item, plain, callerIp, nowMs));
      });
      const check = checkDestination(call.projectId);
      await Promise.all(commands.map((command, index) => checkCommand(command, index, check)));
      return jsonResponse(201, await publishAll(call, commands));
    });
  }

  function readItem(
    item: RequestItem,
    plain: PlainHeaderPolicy,
    callerIp: string | undefined,
    nowMs: Millis,
  ): PublishCommand {
    const input = { rawHeaders: item.rawHeaders, queryConfig: [], tokenInQuery: true, plainHeaders: plain };
    const command = readCommand(workflowUrlOf(item.destination), input, callerIp, nowMs);
    if (item.queue !== '') throw invalidBody('a run is not started in a queue');
    if (item.body.length > bodyLimit.bytesMax) throw bodyTooLarge(bodyLimit);
    return { ...command, body: item.body };
  }

  /** Reads the command without its body. */
  function readCommand(
    url: string,
    input: Omit<OptionsInput, 'proxyHeaders' | 'failureUrl'>,
    callerIp: string | undefined,
    nowMs: Millis,
  ): Omit<PublishCommand, 'body'> {
    const options = readPublishOptions({ ...input, proxyHeaders, failureUrl: url }, 'trigger', quotas, nowMs);
    return callerIp === undefined ? { url, options } : { url, options, callerIp };
  }

  async function checkCommand({ url, options }: PublishCommand, index: number, check: CheckDestination): Promise<void> {
    try {
      await checkAddress(url, check);
      await checkCallbacks(options.settings, check);
    } catch (error) {
      throw errorAtItem(index, error);
    }
  }

  async function publishAll(call: Call, commands: PublishCommand[]): Promise<TriggeredRun[]> {
    const outcomes = await engine.publish(call.projectId, commands, call);
    return outcomes.map((outcome) => triggeredOf(outcome, limits.queuesMax));
  }

  return [
    {
      ...row('publish', 'POST', '/v2/trigger/*', 'triggerWorkflow'),
      summary: 'Starts a run of the workflow at the URL in the path; the body is its payload.',
      takes: { configHeaders: TRIGGER_HEADERS, body: 'bytes' },
      responses: { 200: TriggeredSchema },
      handle: trigger,
    },
    {
      ...row('publish', 'POST', '/v2/batch/trigger', 'triggerWorkflows'),
      summary: 'Starts several workflow runs in one request.',
      takes: { body: TriggerItemsSchema },
      refusals: [412],
      responses: { 201: TriggeredListSchema },
      handle: triggerAll,
    },
  ];
}

function workflowUrlOf(destination: Destination): string {
  if (destination.kind === 'url') return destination.url;
  throw new ApiError('invalid_destination', 'invalid destination url: a workflow is started at a URL, not a URL group');
}

function triggeredOf(outcome: PublishOutcome, queuesMax: number): TriggeredRun {
  if (outcome === 'tooManyQueues') throw quotaExceeded('maxQueues', queuesMax);
  const { run = missing(), deduplicated } = outcome;
  return { workflowRunId: run.id, workflowCreatedAt: run.createdAtMs, deduplicated };
}

function missing(): never {
  throw new Error('the engine returned no run for a trigger');
}
