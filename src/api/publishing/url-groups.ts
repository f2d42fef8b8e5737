/** Changes, reads and deletes URL groups, with their endpoints and default headers (contract M 13, 22.18 to 22.23). */
import { Type } from '@sinclair/typebox';
import type { Endpoint, EndpointSelector, UrlGroup } from '../../engine/messages/url-groups.ts';
import type { ProjectId } from '../../engine/model.ts';
import { invalidBody, invalidHeader, quotaExceeded } from '../../protocol/errors.ts';
import { headerMapFromRaw, trimBlanks } from '../../protocol/headers.ts';
import { objectOf } from '../../protocol/json-objects.ts';
import { checkName, checkNewName } from '../../protocol/names.ts';
import { hasConfigPrefix } from '../../protocol/options/config-names.ts';
import { itemRawHeaders, readPublishOptions } from '../../protocol/options/options.ts';
import type { HeaderMap } from '../../protocol/options/settings.ts';
import { redactDefaults } from '../../protocol/redaction.ts';
import { withoutFragment } from '../../protocol/urls/destination.ts';
import { maskPassword } from '../../protocol/urls/masked-url.ts';
import { ENDPOINTS_PER_REQUEST_MAX, HEADER_LINES_MAX, SMALL_JSON_LIMIT } from '../limits.ts';
import { readJson } from '../requests/json-body.ts';
import { type ApiResponse, jsonResponse, NO_BODY } from '../response.ts';
import { type Call, type Route, row, type Services } from '../route.ts';
import { refuseRun } from '../runs/run-publish.ts';
import { EndpointsSchema, exactly, GroupHeadersSchema, HeaderMapSchema, Ms, shapeOf, Text } from '../schemas.ts';
import { PUBLISH_HEADERS } from './config-headers.ts';
import { checkCallbacks, checkEndpoints, groupNotFound } from './destinations.ts';
import { type Ignored, KnownHeaders } from './ignored.ts';
import { refuseCron } from './schedule-creation.ts';

const ENDPOINT_NAME_LENGTH_MAX = 255;

const KNOWN_HEADERS = new KnownHeaders(PUBLISH_HEADERS);

export const URL_GROUP = shapeOf<[UrlGroup]>()(
  {
    name: [Text, ({ name }) => name],
    createdAt: [Ms, ({ createdAtMs }) => createdAtMs],
    updatedAt: [Ms, ({ updatedAtMs }) => updatedAtMs],
    endpoints: [
      Type.Array(exactly({ url: Text, name: Type.Optional(Text) }), { minItems: 1 }),
      ({ endpoints }) => endpoints.map((endpoint) => ({ ...endpoint, url: maskPassword(endpoint.url) })),
    ],
    headers: [Type.Optional(HeaderMapSchema), ({ headers }) => headers && redactDefaults(headers)],
  },
  'UrlGroup',
);

export function urlGroupRoutes(services: Services): Route[] {
  const {
    engine: { storeOf },
    checkDestination,
    clock,
    quotas,
    limits,
  } = services;
  const groupLimits = { groupsMax: limits.urlGroupsMax, endpointsMax: limits.urlGroupEndpointsMax };

  async function add({ projectId, id: name, body }: Call): Promise<ApiResponse> {
    checkNewName('topic name', name);
    const endpoints = selectorsOf(await readJson(body, SMALL_JSON_LIMIT)).map(endpointOf);
    await checkEndpoints(endpoints, checkDestination(projectId));
    switch (await storeOf(projectId).urlGroups.addEndpoints({ name, endpoints, limits: groupLimits })) {
      case 'saved':
        return NO_BODY;
      case 'tooManyGroups':
        throw quotaExceeded('maxTopics', groupLimits.groupsMax);
      case 'tooManyEndpoints':
        throw quotaExceeded('maxEndpoints', groupLimits.endpointsMax);
    }
  }

  async function remove({ projectId, id: name, body }: Call): Promise<ApiResponse> {
    checkName('topic name', name);
    const selectors = selectorsOf(await readJson(body, SMALL_JSON_LIMIT));
    if ((await storeOf(projectId).urlGroups.removeEndpoints({ name, selectors })) === 'missing')
      throw groupNotFound(name);
    return NO_BODY;
  }

  async function setHeaders({ projectId, id: name, body, ignored }: Call): Promise<ApiResponse> {
    checkName('topic name', name);
    const headers = await readDefaults(projectId, await readJson(body, SMALL_JSON_LIMIT), ignored);
    if ((await storeOf(projectId).urlGroups.setGroupHeaders({ name, headers })) === 'missing')
      throw groupNotFound(name);
    return NO_BODY;
  }

  /** Checks the headers as a publish would, so that no publish fails on them later. */
  async function readDefaults(projectId: ProjectId, body: unknown, ignored: Ignored): Promise<HeaderMap> {
    const headers = objectOf(body, 'an object is needed')['headers'];
    if (headers === undefined || headers === null) throw invalidBody('headers: an object of headers is needed');
    const rawHeaders = withoutEmpty(
      itemRawHeaders(headers, { bytesMax: Number.POSITIVE_INFINITY, linesMax: HEADER_LINES_MAX }),
    );
    for (let i = 0; i < rawHeaders.length; i += 2) checkDefault(rawHeaders[i] ?? '');
    if (rawHeaders.join('').length > limits.headerBytesMax) {
      throw invalidBody(`headers: at most ${limits.headerBytesMax} bytes (header_bytes_max)`);
    }
    const input = { rawHeaders, queryConfig: [], tokenInQuery: false, proxyHeaders: [] };
    const options = readPublishOptions(input, 'publish', quotas, clock.nowMs());
    refuseCron(options, 'as a default of a URL group');
    refuseRun(options, 'as a default of a URL group');
    await checkCallbacks(options.settings, checkDestination(projectId));
    KNOWN_HEADERS.findIgnored(rawHeaders, ignored);
    return headerMapFromRaw(rawHeaders);
  }

  async function list({ projectId }: Call): Promise<ApiResponse> {
    return jsonResponse(200, (await storeOf(projectId).urlGroups.listUrlGroups()).map(URL_GROUP.view));
  }

  async function get({ projectId, id: name }: Call): Promise<ApiResponse> {
    checkName('topic name', name);
    const group = await storeOf(projectId).urlGroups.findUrlGroup({ name });
    if (!group) throw groupNotFound(name);
    return jsonResponse(200, URL_GROUP.view(group));
  }

  async function drop({ projectId, id: name }: Call): Promise<ApiResponse> {
    checkName('topic name', name);
    await storeOf(projectId).urlGroups.deleteUrlGroup({ name });
    return NO_BODY;
  }

  const endpointsPath = '/v2/topics/:name/endpoints';
  const groupPath = '/v2/topics/:name';
  return [
    {
      ...row('full', 'POST', endpointsPath, 'addUrlGroupEndpoints'),
      summary: 'Adds or updates endpoints of a URL group, and creates a missing group.',
      takes: { body: EndpointsSchema },
      refusals: [412],
      handle: add,
    },
    {
      ...row('full', 'DELETE', endpointsPath, 'removeUrlGroupEndpoints'),
      summary: 'Removes endpoints from a URL group, and deletes the group with its last endpoint.',
      takes: { body: EndpointsSchema },
      handle: remove,
    },
    {
      ...row('full', 'PATCH', groupPath, 'updateUrlGroup'),
      summary: 'Replaces the default headers of a URL group.',
      takes: { body: GroupHeadersSchema },
      refusals: [412],
      handle: setHeaders,
    },
    {
      ...row('full', 'DELETE', groupPath, 'deleteUrlGroup'),
      summary: 'Deletes a URL group.',
      handle: drop,
    },
    {
      ...row('read', 'GET', groupPath, 'getUrlGroup'),
      isLong: true,
      summary: 'Reads one URL group.',
      responses: { 200: URL_GROUP.schema },
      handle: get,
    },
    {
      ...row('read', 'GET', '/v2/topics', 'listUrlGroups'),
      isLong: true,
      summary: 'Lists the URL groups by name.',
      responses: { 200: Type.Array(URL_GROUP.schema) },
      handle: list,
    },
  ];
}

/** The elements of `endpoints`, each with a URL, a name or both. Throws `invalid_body` (400). */
function selectorsOf(body: unknown): EndpointSelector[] {
  const { endpoints } = objectOf(body, 'an object is needed');
  if (!Array.isArray(endpoints) || endpoints.length === 0) throw invalidBody('a non-empty array endpoints is needed');
  if (endpoints.length > ENDPOINTS_PER_REQUEST_MAX) {
    throw invalidBody(`at most ${ENDPOINTS_PER_REQUEST_MAX} endpoints, got ${endpoints.length}`);
  }
  return endpoints.map((element: unknown, index) => selectorOf(element, `endpoints[${index}]`));
}

function selectorOf(element: unknown, where: string): EndpointSelector {
  const { url, name } = objectOf(element, `${where} must be an object`);
  const selector: EndpointSelector = {};
  const urlText = textOf(url, `${where}.url`);
  const nameText = textOf(name, `${where}.name`);
  if (urlText !== '') selector.url = withoutFragment(urlText);
  if (nameText !== '') selector.name = nameText;
  if (nameText.length > ENDPOINT_NAME_LENGTH_MAX) {
    throw invalidBody(`${where}.name: at most ${ENDPOINT_NAME_LENGTH_MAX} characters are allowed`);
  }
  // A database cannot store a text with NUL or a lone surrogate exactly, so the endpoint would not be found again.
  if (!nameText.isWellFormed() || nameText.includes('\0')) throw invalidBody(`${where}.name: not a valid text`);
  if (urlText === '' && nameText === '') throw invalidBody(`${where} needs a url or a name`);
  return selector;
}

function endpointOf({ url, name }: EndpointSelector, index: number): Endpoint {
  if (url === undefined) throw invalidBody(`endpoints[${index}].url is missing`);
  return name === undefined ? { url } : { url, name };
}

/** Absent and null become `''`. */
function textOf(value: unknown, where: string): string {
  if (value === undefined || value === null) return '';
  if (typeof value !== 'string') throw invalidBody(`${where} must be a string`);
  return value;
}

/** Removes headers with an empty value, which counts as absent, as in a publish. */
function withoutEmpty(rawHeaders: readonly string[]): string[] {
  const nonEmpty: string[] = [];
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const value = trimBlanks(rawHeaders[i + 1] ?? '');
    if (value !== '') nonEmpty.push(rawHeaders[i] ?? '', value);
  }
  return nonEmpty;
}

/** Throws for a header that would have no effect on messages. */
function checkDefault(name: string): void {
  if (hasConfigPrefix(name) || name.toLowerCase() === 'content-type') return;
  throw invalidHeader(name, 'only Content-Type and headers that begin with Upstash- or Waypost- can be defaults');
}
