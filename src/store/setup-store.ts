/** How is what many messages are published with kept: projects, tokens, URL groups, schedules, queues, keys? */
import type { AcceptedStanding } from '../engine/accepted.ts';
import type { FlowKey, FlowPin, Queue } from '../engine/lanes.ts';
import type { Millis, ProjectId } from '../engine/model.ts';
import type { Schedule, ScheduleChange } from '../engine/schedules.ts';
import type {
  AccountsState,
  DeletedQueue,
  DueSchedule,
  FlowKeyStore,
  Project,
  ProjectStore,
  QueueStore,
  ScheduleStore,
  ScheduleView,
  SealedKeys,
  Token,
  UrlGroupStore,
} from '../engine/stores.ts';
import type { Endpoint, EndpointSelector, UrlGroup, UrlGroupLimits } from '../engine/url-groups.ts';
import type { HeaderMap } from '../protocol/settings.ts';
import type { Connection } from './connection.ts';
import { decodeFlowKey, decodeQueue } from './decode-lanes.ts';
import { decodeHeader, encodeHeader } from './sql/content-rows.ts';
import { decodeSchedule, decodeScheduleViews, encodeSchedule, encodeScheduleChange } from './sql/schedule-rows.ts';
import type { UrlGroupRow } from './sql/url-groups.ts';

/** The first part of `SqlStore`. */
export class SqlSetupStore implements ProjectStore, UrlGroupStore, ScheduleStore, QueueStore, FlowKeyStore {
  protected readonly connection: Connection;

  constructor(connection: Connection) {
    this.connection = connection;
  }

  ensureProject(name: string, signingKeys: SealedKeys, nowMs: Millis): Promise<Project> {
    return this.connection.write('ensureProject', { name, signingKeys, nowMs });
  }

  listProjects(): Promise<Project[]> {
    return this.connection.read('listProjects', {});
  }

  addToken(token: Token): Promise<void> {
    return this.connection.write('addToken', token);
  }

  readAccounts(): Promise<AccountsState> {
    return this.connection.read('readAccounts', {});
  }

  listTokens(): Promise<Token[]> {
    return this.connection.read('listTokens', {});
  }

  removeToken(tokenHash: string): Promise<boolean> {
    return this.connection.write('removeToken', { tokenHash });
  }

  async noteTokenUse(tokenHash: string, nowMs: Millis): Promise<void> {
    await this.connection.write('noteTokenUse', { tokenHash, nowMs });
  }

  signingKeys(projectId: ProjectId): Promise<SealedKeys> {
    return this.connection.read('signingKeys', { projectId });
  }

  replaceSigningKeys(projectId: ProjectId, expected: SealedKeys, next: SealedKeys): Promise<SealedKeys> {
    return this.connection.write('replaceSigningKeys', { projectId, expected, next });
  }

  addEndpoints(
    projectId: ProjectId,
    name: string,
    endpoints: Endpoint[],
    limits: UrlGroupLimits,
    nowMs: Millis,
  ): Promise<'saved' | 'tooManyGroups' | 'tooManyEndpoints'> {
    return this.connection.write('addEndpoints', { projectId, name, endpoints, limits, nowMs });
  }

  removeEndpoints(
    projectId: ProjectId,
    name: string,
    selectors: EndpointSelector[],
    nowMs: Millis,
  ): Promise<'saved' | 'missing'> {
    return this.connection.write('removeEndpoints', { projectId, name, selectors, nowMs });
  }

  setGroupHeaders(projectId: ProjectId, name: string, headers: HeaderMap, nowMs: Millis): Promise<'saved' | 'missing'> {
    return this.connection.write('setGroupHeaders', { projectId, name, headers: encodeHeader(headers), nowMs });
  }

  async deleteUrlGroup(projectId: ProjectId, name: string): Promise<void> {
    await this.connection.write('deleteUrlGroup', { projectId, name });
  }

  async findUrlGroup(projectId: ProjectId, name: string): Promise<UrlGroup | undefined> {
    const row = await this.connection.read('findUrlGroup', { projectId, name });
    return row === null ? undefined : decodeUrlGroup(row);
  }

  async listUrlGroups(projectId: ProjectId): Promise<UrlGroup[]> {
    return (await this.connection.read('listUrlGroups', { projectId })).map(decodeUrlGroup);
  }

  saveSchedule(
    schedule: Schedule,
    fromVersion: number | undefined,
    schedulesMax: number,
  ): Promise<'saved' | 'stale' | 'tooMany'> {
    return this.connection.write('saveSchedule', {
      schedule: encodeSchedule(schedule),
      fromVersion: fromVersion ?? null,
      schedulesMax,
    });
  }

  changeSchedules(changes: ScheduleChange[], nowMs: Millis): Promise<(AcceptedStanding[] | 'stale')[]> {
    const stored = changes.map(encodeScheduleChange);
    return this.connection.write('changeSchedules', { changes: stored, nowMs });
  }

  async deleteSchedule(projectId: ProjectId, id: string): Promise<void> {
    await this.connection.write('deleteSchedule', { projectId, id });
  }

  async findSchedule(projectId: ProjectId, id: string): Promise<ScheduleView | undefined> {
    const [view] = decodeScheduleViews(await this.connection.read('findSchedule', { projectId, id }));
    return view;
  }

  async listSchedules(projectId: ProjectId): Promise<ScheduleView[]> {
    return decodeScheduleViews(await this.connection.read('listSchedules', { projectId }));
  }

  async dueSchedules(request: {
    nowMs: Millis;
    limit: number;
    bytesMax: number;
  }): Promise<{ due: DueSchedule[]; nextAtMs: Millis | undefined }> {
    const { due, nextAtMs } = await this.connection.read('dueSchedules', request);
    return {
      due: due.map((row) => ({ schedule: decodeSchedule(row), isBusy: row.busy === 1 })),
      nextAtMs: nextAtMs ?? undefined,
    };
  }

  async strandedSchedules(passedAfterMs: Millis, piece: { limit: number; bytesMax: number }): Promise<Schedule[]> {
    const rows = await this.connection.read('strandedSchedules', { passedAfterMs, ...piece });
    return rows.map(decodeSchedule);
  }

  saveQueue(
    projectId: ProjectId,
    { name, parallelism, isPaused }: { name: string; parallelism: number; isPaused: boolean },
    nowMs: Millis,
  ): Promise<'saved' | 'tooManyQueues'> {
    const settings = { name, parallelism, paused: isPaused };
    return this.connection.write('saveQueue', { projectId, ...settings, nowMs });
  }

  setQueuePaused(projectId: ProjectId, name: string, isPaused: boolean, nowMs: Millis): Promise<'saved' | 'missing'> {
    return this.connection.write('setQueuePaused', { projectId, name, paused: isPaused, nowMs });
  }

  async deleteQueue(projectId: ProjectId, name: string, nowMs: Millis): Promise<DeletedQueue | undefined> {
    const queueId = await this.connection.write('deleteQueue', { projectId, name, nowMs });
    return queueId === null ? undefined : { projectId, queueId };
  }

  emptyQueue(queue: DeletedQueue, count: number, nowMs: Millis): Promise<boolean> {
    return this.connection.write('emptyQueue', { ...queue, count, nowMs });
  }

  async findQueue(projectId: ProjectId, name: string): Promise<Queue | undefined> {
    const row = await this.connection.read('findQueue', { projectId, name });
    return row === null ? undefined : decodeQueue(row);
  }

  async listQueues(
    projectId: ProjectId,
    { after = '', count = Number.MAX_SAFE_INTEGER }: { after?: string; count?: number } = {},
  ): Promise<Queue[]> {
    return (await this.connection.read('listQueues', { projectId, after, count })).map(decodeQueue);
  }

  async setKeyPaused(projectId: ProjectId, key: string, isPaused: boolean, nowMs: Millis): Promise<void> {
    await this.connection.write('setKeyPaused', { projectId, key, paused: isPaused, nowMs });
  }

  async pinKey(projectId: ProjectId, key: string, pin: FlowPin, nowMs: Millis): Promise<void> {
    await this.connection.write('pinKey', { projectId, key, pin, nowMs });
  }

  async unpinKey(
    projectId: ProjectId,
    key: string,
    parts: { parallelism: boolean; rate: boolean },
    nowMs: Millis,
  ): Promise<void> {
    await this.connection.write('unpinKey', { projectId, key, ...parts, nowMs });
  }

  async resetKeyRate(projectId: ProjectId, key: string, nowMs: Millis): Promise<void> {
    await this.connection.write('resetKeyRate', { projectId, key, nowMs });
  }

  async findKey(projectId: ProjectId, key: string, nowMs: Millis): Promise<FlowKey | undefined> {
    const row = await this.connection.read('findKey', { projectId, key, nowMs });
    return row === null ? undefined : decodeFlowKey(row, nowMs);
  }

  async listKeys(
    projectId: ProjectId,
    filter: { search: string; after: string; count: number },
    nowMs: Millis,
  ): Promise<FlowKey[]> {
    const rows = await this.connection.read('listKeys', { projectId, ...filter, nowMs });
    return rows.map((row) => decodeFlowKey(row, nowMs));
  }

  countInFlight(projectId: ProjectId): Promise<number> {
    return this.connection.read('countInFlight', { projectId });
  }
}

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
