/** The context that the commands and loops of a running engine share as their first argument. */
import type { Store } from '../store/store.ts';
import type { EngineDeps } from './deps.ts';
import type { DeliveryContext } from './dispatch/context.ts';
import type { Dispatcher } from './dispatch/dispatcher.ts';
import type { DueLoop } from './loops/due-loop.ts';
import type { MinuteCounter } from './minutes/counter.ts';
import type { OperatorEvents } from './operator-events/events.ts';
import type { ActiveRuns } from './runs/active-runs.ts';

export interface EngineContext extends Omit<EngineDeps, 'operatorEvents'>, DeliveryContext {
  store: Store;
  minutes: MinuteCounter;
  active: ActiveRuns;
  operatorEvents: OperatorEvents | undefined;
  dispatcher: Dispatcher;
  /** Cancels the remaining messages of ended runs. */
  cancellations: DueLoop;
  /** Ends waits at their deadlines. */
  waiters: DueLoop;
  /** Triggers schedules. */
  schedules: DueLoop;
}

/** Functions of the context as methods: `(context, ...rest) => result` becomes `(...rest) => result`. */
export type BoundFunctions<Functions> = {
  [M in keyof Functions]: Functions[M] extends (context: EngineContext, ...rest: infer Rest) => infer Result
    ? (...rest: Rest) => Result
    : never;
};

type ContextFunction = (context: EngineContext, ...rest: never[]) => unknown;

export function bindContext<Functions extends Record<string, ContextFunction>>(
  functions: Functions,
  context: EngineContext,
): BoundFunctions<Functions> {
  const methods = Object.entries(functions).map(([name, run]) => [name, run.bind(undefined, context)]);
  return Object.fromEntries(methods) as BoundFunctions<Functions>;
}
