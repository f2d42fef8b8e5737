/** Takes one message (messaging.md 22.1). The hot path of the whole interface. */
import type { PublishCommand, Published } from '../engine/commands.ts';
import { readDestination } from '../protocol/destination.ts';
import { readPublishOptions } from '../protocol/options.ts';
import { splitQuery } from '../protocol/request-target.ts';
import type { Answer } from './answer.ts';
import { PUBLISH_HEADERS } from './config-headers.ts';
import { checkAddress, groupNotFound } from './destinations.ts';
import type { BodyLimit } from './request-body.ts';
import type { Call, Route, Services } from './route.ts';
import { PublishedSchema } from './schemas.ts';
import { refuseUnavailable } from './unavailable-features.ts';

export function publishRoutes(services: Services): Route[] {
  const { engine, checkDestination, clock, quotas, proxyHeaders, limits } = services;
  const bodyLimit = messageLimit(limits.messageBytesMax);

  async function publish(call: Call): Promise<Answer> {
    const { rawHeaders, projectId, callerIp, isTokenInHeader } = call;
    const query = splitQuery(call.rawQuery);
    const destination = readDestination(call.rawDestination, query.rest);
    // The destination before the headers, and both before the body is asked for (messaging.md 25).
    const lookUp = destination.kind === 'url' ? checkAddress(destination.url, checkDestination) : undefined;
    if (lookUp !== undefined) await lookUp;
    const input = { rawHeaders, queryConfig: query.config, tokenInQuery: !isTokenInHeader, proxyHeaders };
    const options = readPublishOptions(input, 'publish', quotas, clock.nowMs());
    refuseUnavailable(options, rawHeaders, query.config);
    if (destination.kind === 'group') throw groupNotFound(destination.name);

    const { url } = destination;
    const body = await call.body.read(bodyLimit);
    const command: PublishCommand = { url, body, options };
    if (callerIp !== undefined) command.callerIp = callerIp;
    const [published] = await engine.publish(projectId, [command]);
    if (!published) throw new Error('the engine answered a publish with nothing');
    return { status: published.deduplicated ? 202 : 200, json: publishedJson(published) };
  }

  return [
    {
      method: 'POST',
      path: '/v2/publish/*',
      access: 'full',
      summary: 'Publishes a message to the URL in the path.',
      takes: { configHeaders: PUBLISH_HEADERS, body: 'bytes' },
      refusals: [404],
      answers: { 200: PublishedSchema, 202: PublishedSchema },
      handle: publish,
    },
  ];
}

/** The limit of one message's body, wherever the message comes from. */
export function messageLimit(bytesMax: number): BodyLimit {
  return { bytesMax, setting: 'message_bytes_max', quota: 'maxMessageSize' };
}

/** The object of 22.1. Ids are plain ASCII without quotes, so only the URL needs escaping. */
export function publishedJson({ messageId, url, deduplicated }: Published): string {
  const end = deduplicated ? ',"deduplicated":true}' : '}';
  return `{"messageId":"${messageId}","url":${JSON.stringify(url)}${end}`;
}
