/** Changes and lists URL groups. A group is small, so a change writes all its endpoints again. */

import {
  type Endpoint,
  type EndpointSelector,
  type UrlGroup,
  type UrlGroupLimits,
  withEndpoints,
  withoutEndpoints,
} from '../../engine/messages/url-groups.ts';
import type { ProjectId } from '../../engine/model.ts';
import type { HeaderMap } from '../../protocol/options/settings.ts';
import type { Queries, Transaction } from '../driver.ts';
import type { WriteContext } from './logs/log-writer.ts';
import { decodeHeader, encodeHeader } from './messages/content-rows.ts';
import { longRead, read, write } from './operation.ts';

interface UrlGroupRow {
  name: string;
  created_at_ms: number;
  updated_at_ms: number;
  /** JSON of a header map. */
  headers: string | null;
  endpoints: Endpoint[];
}

interface GroupName {
  projectId: ProjectId;
  name: string;
}

/**
 * Adds or updates endpoints by the rule of `withEndpoints`, and creates the group if it is missing. If a limit would be
 * exceeded, nothing is changed and the result names the limit. A command that adds neither a group nor an endpoint is
 * never refused.
 */
export const addEndpoints = write(
  { weight: ({ endpoints }) => ({ rows: endpoints.length }) },
  async (
    { tx }: WriteContext,
    args: GroupName & { endpoints: Endpoint[]; limits: UrlGroupLimits; nowMs: number },
  ): Promise<'saved' | 'tooManyGroups' | 'tooManyEndpoints'> => {
    const { limits, nowMs } = args;
    const before = await endpointsOf(tx, args);
    const after = withEndpoints(before, args.endpoints);
    const isNew = before.length === 0;
    if (isNew && limits.groupsMax > 0 && (await countGroups(tx, args.projectId)) >= limits.groupsMax) {
      return 'tooManyGroups';
    }
    if (after.length > before.length && limits.endpointsMax > 0 && after.length > limits.endpointsMax) {
      return 'tooManyEndpoints';
    }
    if (isNew) {
      await tx.insertMany(
        'url_groups',
        ['project_id', 'name', 'created_at_ms', 'updated_at_ms'],
        [[args.projectId, args.name, nowMs, nowMs]],
      );
    }
    await replaceEndpoints(tx, args, after, nowMs);
    return 'saved';
  },
);

/** Skips selectors that match nothing. With the last endpoint, the group and its default headers are removed too. */
export const removeEndpoints = write(
  async (
    { tx }: WriteContext,
    args: GroupName & { selectors: EndpointSelector[]; nowMs: number },
  ): Promise<'saved' | 'missing'> => {
    const before = await endpointsOf(tx, args);
    if (before.length === 0) return 'missing';
    const after = withoutEndpoints(before, args.selectors);
    if (after.length === 0) await removeGroup(tx, args);
    else if (after.length < before.length) await replaceEndpoints(tx, args, after, args.nowMs);
    return 'saved';
  },
);

/** Replaces the default headers; an empty map clears them. */
export const setGroupHeaders = write(
  async (
    { tx }: WriteContext,
    { projectId, name, headers, nowMs }: GroupName & { headers: HeaderMap; nowMs: number },
  ): Promise<'saved' | 'missing'> => {
    const changed = await tx.run(
      'update url_groups set headers = ?, updated_at_ms = ? where project_id = ? and name = ?',
      [encodeHeader(headers), nowMs, projectId, name],
    );
    return changed === 0 ? 'missing' : 'saved';
  },
);

/** Does nothing if the group does not exist. */
export const deleteUrlGroup = write(async ({ tx }: WriteContext, group: GroupName): Promise<void> => {
  await removeGroup(tx, group);
});

export const findUrlGroup = read(
  async (queries: Queries, { projectId, name }: GroupName): Promise<UrlGroupRow | undefined> => {
    const [row] = await queries.query<Omit<UrlGroupRow, 'endpoints'>>(
      'select name, created_at_ms, updated_at_ms, headers from url_groups where project_id = ? and name = ?',
      [projectId, name],
    );
    return row && { ...row, endpoints: await endpointsOf(queries, { projectId, name }) };
  },
  (row) => row && decodeUrlGroup(row),
);

/** The URL groups of a project, ordered by name. */
export const listUrlGroups = longRead(
  async (queries: Queries, { projectId }: { projectId: ProjectId }): Promise<UrlGroupRow[]> => {
    const groups = await queries.query<Omit<UrlGroupRow, 'endpoints'>>(
      'select name, created_at_ms, updated_at_ms, headers from url_groups where project_id = ? order by name',
      [projectId],
    );
    const rows = await queries.query<EndpointRow & { group_name: string }>(
      'select group_name, url, name from url_group_endpoints where project_id = ? order by group_name, position',
      [projectId],
    );
    const endpointsByGroup = Map.groupBy(rows, (row) => row.group_name);
    return groups.map((group) => ({ ...group, endpoints: (endpointsByGroup.get(group.name) ?? []).map(endpointOf) }));
  },
  (rows) => rows.map(decodeUrlGroup),
);

function decodeUrlGroup(row: UrlGroupRow): UrlGroup {
  const group: UrlGroup = {
    name: row.name,
    createdAtMs: row.created_at_ms,
    updatedAtMs: row.updated_at_ms,
    endpoints: row.endpoints,
  };
  if (row.headers !== null) group.headers = decodeHeader(row.headers);
  return group;
}

interface EndpointRow {
  url: string;
  name: string | null;
}

function endpointOf({ url, name }: EndpointRow): Endpoint {
  return name === null ? { url } : { url, name };
}

async function endpointsOf(queries: Queries, { projectId, name }: GroupName): Promise<Endpoint[]> {
  const rows = await queries.query<EndpointRow>(
    'select url, name from url_group_endpoints where project_id = ? and group_name = ? order by position',
    [projectId, name],
  );
  return rows.map(endpointOf);
}

async function countGroups(queries: Queries, projectId: ProjectId): Promise<number> {
  const [row] = await queries.query<{ groups: number }>(
    'select count(*) as groups from url_groups where project_id = ?',
    [projectId],
  );
  return row?.groups ?? 0;
}

async function replaceEndpoints(
  tx: Transaction,
  group: GroupName,
  endpoints: readonly Endpoint[],
  nowMs: number,
): Promise<void> {
  const { projectId, name } = group;
  await removeAllEndpoints(tx, group);
  await tx.insertMany(
    'url_group_endpoints',
    ['project_id', 'group_name', 'position', 'url', 'name'],
    endpoints.map((endpoint, position) => [projectId, name, position, endpoint.url, endpoint.name ?? null]),
  );
  await tx.send('update url_groups set updated_at_ms = ? where project_id = ? and name = ?', [nowMs, projectId, name]);
}

async function removeAllEndpoints(tx: Transaction, { projectId, name }: GroupName): Promise<void> {
  await tx.send('delete from url_group_endpoints where project_id = ? and group_name = ?', [projectId, name]);
}

async function removeGroup(tx: Transaction, group: GroupName): Promise<void> {
  await removeAllEndpoints(tx, group);
  await tx.send('delete from url_groups where project_id = ? and name = ?', [group.projectId, group.name]);
}
