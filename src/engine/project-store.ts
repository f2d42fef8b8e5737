/**
 * The store for one project at the current time. The API uses this store directly for operations without a decision of
 * the engine.
 */
import type { Operations } from '../store/store.ts';
import type { InProject, InProjectAt, ProjectId } from './model.ts';
import type { Clock } from './ports.ts';

type ProjectOperations<Noun> = {
  [M in keyof Noun as Noun[M] extends (args: infer Args) => unknown
    ? Args extends InProject
      ? M
      : never
    : never]: Noun[M] extends (args: infer Args) => infer Result
    ? (...args: keyof Omit<Args, keyof InProjectAt> extends never ? [] : [Omit<Args, keyof InProjectAt>]) => Result
    : never;
};

/** The operations on one project, without the arguments `projectId` and `nowMs`, which are filled in. */
export type ProjectStore = { readonly [Noun in keyof Operations]: ProjectOperations<Operations[Noun]> };

/** Calls an operation of `store`; `more`: the arguments to fill in. */
type Call = (store: Operations | ProjectStore, more?: InProjectAt) => Promise<unknown>;

/** `route` chooses the store for each call. */
export function routedStore(route: (call: Call) => Promise<unknown>): ProjectStore {
  const operationsOf = (noun: PropertyKey): object =>
    new Proxy(NOTHING, {
      get: (_, name) => (args?: object) =>
        route((store, more) => Reflect.get(Reflect.get(store, noun), name)(more ? { ...args, ...more } : args)),
    });
  return new Proxy(NOTHING, { get: (_, noun) => operationsOf(noun) }) as ProjectStore;
}

const NOTHING = {};

/** The store, limited to one project. */
export function storeOf(projectId: ProjectId, store: Operations, clock: Clock): ProjectStore {
  return routedStore((call) => call(store, { projectId, nowMs: clock.nowMs() }));
}
