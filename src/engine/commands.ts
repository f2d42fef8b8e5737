/** What `api` asks of the engine: checked, typed, with defaults filled in. */
import type { HeaderMap } from '../protocol/settings.ts';
import type { Explanation } from './explain.ts';
import type { AttributeFilter, DeadFilter, LogFilter } from './filters.ts';
import type { FlowKey, FlowPin, Queue } from './lanes.ts';
import type { Message, MessageId, Millis, ProjectId } from './model.ts';
import type { Page, PageRequest } from './page.ts';
import type { PublishCommand, PublishOutcome } from './publish-command.ts';
import type { DeadRetryOverride } from './revive.ts';
import type { WorkflowCommands } from './runs/workflows.ts';
import type { ScheduleCommand } from './schedule-commands.ts';
import type { DeadMessage, LogEntry, ScheduleView } from './stores.ts';
import type { Endpoint, EndpointSelector, UrlGroup, UrlGroupLimits } from './url-groups.ts';

export interface Engine extends WorkflowCommands {
  /**
   * Throws `Overloaded` (503) when a publish of the project that came now would be turned away: to be asked before its body
   * is read. Not of what continues a run, which never is.
   */
  checkAdmission(projectId: ProjectId): void;
  /**
   * Accepts all that nothing is wrong with, or none; resolves after the commit (P1), in the order given. Throws, having
   * accepted nothing, `RateLimited` (429) when the project has fewer messages left today, `Overloaded` (503) when more is
   * published than can be saved and none of it continues a run, and `ApiError` when a run that a message is for is over
   * (400) or its journal would be too long (412); and `AccountsChanged` when those by which the caller was admitted,
   * `accountsVersion`, are not the store's any more.
   */
  publish(projectId: ProjectId, commands: PublishCommand[], accountsVersion?: number): Promise<PublishOutcome[]>;
  findMessage(projectId: ProjectId, id: MessageId): Promise<Message | undefined>;
  /** Why an unfinished message waits (P14); `undefined` once it is finished. */
  explainMessage(projectId: ProjectId, id: MessageId): Promise<Explanation | undefined>;
  cancelMessages(projectId: ProjectId, ids: MessageId[]): Promise<number>;
  /** Cancels up to `count` matching messages, all when absent, in pieces that do not stall the store. */
  cancelMatching(projectId: ProjectId, filter: AttributeFilter, count?: number): Promise<number>;

  listDead(projectId: ProjectId, filter: DeadFilter, page: PageRequest): Promise<Page<DeadMessage>>;
  findDead(projectId: ProjectId, dlqId: string): Promise<DeadMessage | undefined>;
  deleteDead(projectId: ProjectId, dlqIds: string[]): Promise<number>;
  /**
   * Publishes each entry anew and removes it, in the order given; `undefined`, with nothing done, when one of them does
   * not exist. More than 16 go in pieces, and a piece of which one goes away meanwhile is left as it is.
   */
  retryDead(projectId: ProjectId, dlqIds: string[], override?: DeadRetryOverride): Promise<MessageId[] | undefined>;

  listLogs(projectId: ProjectId, filter: LogFilter, page: PageRequest): Promise<Page<LogEntry>>;

  /** What the limits refuse changes nothing. */
  addEndpoints(
    projectId: ProjectId,
    name: string,
    endpoints: Endpoint[],
    limits: UrlGroupLimits,
  ): Promise<'saved' | 'tooManyGroups' | 'tooManyEndpoints'>;
  /** With its last endpoint the group goes. */
  removeEndpoints(projectId: ProjectId, name: string, selectors: EndpointSelector[]): Promise<'saved' | 'missing'>;
  /** Replaces the group's default headers, which the caller has checked; an empty map clears them. */
  setGroupHeaders(projectId: ProjectId, name: string, headers: HeaderMap): Promise<'saved' | 'missing'>;
  deleteUrlGroup(projectId: ProjectId, name: string): Promise<void>;
  findUrlGroup(projectId: ProjectId, name: string): Promise<UrlGroup | undefined>;
  /** Ordered by name. */
  listUrlGroups(projectId: ProjectId): Promise<UrlGroup[]>;

  /** Replaces all of a schedule with the same id, except its pause and what its triggers so far left. */
  createSchedule(
    projectId: ProjectId,
    command: ScheduleCommand,
    schedulesMax: number,
  ): Promise<{ scheduleId: string } | 'tooMany'>;
  /** Messages that it made go on. */
  deleteSchedule(projectId: ProjectId, id: string): Promise<void>;
  /** Times that pass during a pause are not made up for. */
  setSchedulePaused(projectId: ProjectId, id: string, isPaused: boolean): Promise<'saved' | 'missing'>;
  findSchedule(projectId: ProjectId, id: string): Promise<ScheduleView | undefined>;
  /** Ordered by creation; bodies as `ScheduleStore` says. */
  listSchedules(projectId: ProjectId): Promise<ScheduleView[]>;

  /** Makes a queue or replaces its settings; what exists is never refused. */
  saveQueue(
    projectId: ProjectId,
    queue: { name: string; parallelism: number; isPaused: boolean },
  ): Promise<'saved' | 'tooManyQueues'>;
  setQueuePaused(projectId: ProjectId, name: string, isPaused: boolean): Promise<'saved' | 'missing'>;
  /** Cancels the queue's messages, in pieces that do not stall the store. */
  deleteQueue(projectId: ProjectId, name: string): Promise<void>;
  findQueue(projectId: ProjectId, name: string): Promise<Queue | undefined>;
  /** Ordered by name: up to `count` (all) of those after `after`. */
  listQueues(projectId: ProjectId, page?: { after?: string; count?: number }): Promise<Queue[]>;

  /** Pausing makes the key if need be; resuming one that does not exist changes nothing. */
  setKeyPaused(projectId: ProjectId, key: string, isPaused: boolean): Promise<void>;
  /** Makes the key if need be. */
  pinKey(projectId: ProjectId, key: string, pin: FlowPin): Promise<void>;
  /** The last values stay in force until the next message sets new ones. */
  unpinKey(projectId: ProjectId, key: string, parts: { parallelism: boolean; rate: boolean }): Promise<void>;
  resetKeyRate(projectId: ProjectId, key: string): Promise<void>;
  findKey(projectId: ProjectId, key: string): Promise<FlowKey | undefined>;
  /** Ordered by key: up to `count` of those after `after` that contain `search`. */
  listKeys(projectId: ProjectId, filter: { search: string; after: string; count: number }): Promise<FlowKey[]>;
  /** Attempts of the project in flight. */
  countInFlight(projectId: ProjectId): Promise<number>;

  /** Resolves when the store reads and saves, as far as is known; rejects with `StoreUnavailable` when it does not. */
  ping(): Promise<void>;
  /** Stops claiming, lets running attempts finish up to `limitMs`, then gives the rest back uncounted. Idempotent. */
  drain(limitMs: Millis): Promise<void>;
}
