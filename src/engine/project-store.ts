/**
 * What the API asks of the store directly, because the engine has nothing to decide: for one project, at the current
 * time.
 */
import type { Store } from '../store/store.ts';
import type { InProjectAt, ProjectId } from './model.ts';
import type { Clock } from './ports.ts';

/** The methods of a part of the store, without the arguments that a `ProjectStore` fills in: project and time. */
type OfProject<Part> = {
  [M in keyof Part]: Part[M] extends (args: infer Args) => infer Answer
    ? (...args: keyof Omit<Args, keyof InProjectAt> extends never ? [] : [Omit<Args, keyof InProjectAt>]) => Answer
    : never;
};

/** Each method is described at its part of the store. */
export interface ProjectStore {
  readonly keys: OfProject<Store['keys']>;
  readonly queues: OfProject<Pick<Store['queues'], 'saveQueue' | 'setQueuePaused' | 'findQueue' | 'listQueues'>>;
  readonly urlGroups: OfProject<Store['urlGroups']>;
  readonly schedules: OfProject<Pick<Store['schedules'], 'findSchedule' | 'listSchedules' | 'deleteSchedule'>>;
  readonly dead: OfProject<Pick<Store['dead'], 'listDead' | 'findDead' | 'deleteDead'>>;
  readonly backlog: OfProject<Pick<Store['backlog'], 'readFailures' | 'readStorage'>>;
  readonly logs: OfProject<Store['logs']>;
  readonly minutes: OfProject<Pick<Store['minutes'], 'listMinutes'>>;
  readonly runs: OfProject<Pick<Store['runs'], 'journalBytes'>>;
  readonly deadRuns: OfProject<Pick<Store['deadRuns'], 'listDeadRuns' | 'findDeadRuns' | 'deleteDeadRuns'>>;
  readonly waiters: OfProject<Pick<Store['waiters'], 'listAllWaiters'>>;
  readonly runLogs: OfProject<Pick<Store['runLogs'], 'listRunEvents'>>;
}

/** The store, limited to one project. */
export function storeOf(projectId: ProjectId, store: Store, clock: Clock): ProjectStore {
  const named = (part: object): object =>
    new Proxy(part, {
      get: (_, method) => (args: object) =>
        Reflect.get(part, method).call(part, { ...args, projectId, nowMs: clock.nowMs() }),
    });
  return new Proxy(store, { get: (_, part) => named(Reflect.get(store, part)) }) as unknown as ProjectStore;
}
