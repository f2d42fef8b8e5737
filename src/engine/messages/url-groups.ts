/** URL groups, which are named lists of endpoints. A publish to a group goes to all its endpoints (contract M 13). */
import type { HeaderMap } from '../../protocol/options/settings.ts';
import { maskPassword } from '../../protocol/urls/masked-url.ts';
import type { Millis } from '../model.ts';
import type { PublishCommand } from './publish-command.ts';

export interface Endpoint {
  url: string;
  /** Free text, unique in its group. */
  name?: string;
}

/** A group exists while it has an endpoint. */
export interface UrlGroup {
  name: string;
  createdAtMs: Millis;
  updatedAtMs: Millis;
  /** The endpoints, in the order in which they were added. */
  endpoints: Endpoint[];
  /** The default config headers of each message that is published to the group; absent: no headers. */
  headers?: HeaderMap;
}

/** Selects the endpoints to remove: by name, by URL, or by both if both are given. */
export interface EndpointSelector {
  url?: string;
  name?: string;
}

/** Quotas that are checked only when a group or an endpoint is added; 0 means unlimited (contract M 20.1). */
export interface UrlGroupLimits {
  groupsMax: number;
  endpointsMax: number;
}

/**
 * `endpoints` after adding the endpoints of `added` one by one. An endpoint with the same name gets the new URL.
 * Otherwise, an endpoint with the same URL gets the new name, if there is a new name. Otherwise the added endpoint is
 * new.
 */
export function withEndpoints(endpoints: readonly Endpoint[], added: readonly Endpoint[]): Endpoint[] {
  const result = endpoints.map((endpoint) => ({ ...endpoint }));
  for (const { url, name } of added) {
    const sameName = name === undefined ? undefined : result.find((endpoint) => endpoint.name === name);
    const sameUrl = result.find((endpoint) => endpoint.url === url);
    if (sameName) sameName.url = url;
    else if (!sameUrl) result.push(name === undefined ? { url } : { url, name });
    else if (name !== undefined) sameUrl.name = name;
  }
  return result;
}

/** Returns `endpoints` without the endpoints that match a selector (contract M 22.19). */
export function withoutEndpoints(endpoints: readonly Endpoint[], selectors: readonly EndpointSelector[]): Endpoint[] {
  return endpoints.filter((endpoint) => !selectors.some((selector) => matches(selector, endpoint)));
}

/** One publish of `shared` for each endpoint of the group, in their order (contract M 5.3). */
export function publishesToGroup(group: UrlGroup, shared: Omit<PublishCommand, 'url'>): PublishCommand[] {
  return group.endpoints.map(({ url, name }) => {
    const settings = { ...shared.options.settings, topicName: group.name };
    if (name !== undefined) settings.endpointName = name;
    return { ...shared, url, options: { ...shared.options, settings } };
  });
}

/** Whether the selector matches. A URL with a masked password matches each endpoint that is shown as this URL. */
function matches({ url, name }: EndpointSelector, endpoint: Endpoint): boolean {
  const isUrl = url === undefined || url === endpoint.url || url === maskPassword(endpoint.url);
  return isUrl && (name === undefined || name === endpoint.name);
}
