/** Replaces single methods of a store in a test. */
import type { Store } from '../../src/store/store.ts';

type Parts = { [P in keyof Store]: Store[P] extends (...args: never[]) => unknown ? never : P }[keyof Store];

type AllOf<Part> = (Part extends unknown ? (part: Part) => void : never) extends (all: infer All) => void ? All : never;

/** The methods of the store and of all its members. Their names are unique. */
export type StoreMethods = Omit<Store, Parts> & AllOf<Store[Parts]>;

/** Wraps `store`: calls of `methods` go to the replacements, all others to the store itself. */
export function alteredStore<S extends Store>(store: S, methods: Partial<StoreMethods>): S {
  const instead = (name: string | symbol): unknown => Reflect.get(methods, name);
  return override(store, (name) => {
    const member: unknown = Reflect.get(store, name);
    return typeof member === 'object' && member !== null ? override(member, instead) : instead(name);
  });
}

/** Wraps `target`: each member is the result of `instead`, or the original member if the result is `undefined`. */
function override<T extends object>(target: T, instead: (name: string | symbol) => unknown): T {
  return new Proxy(target, {
    get: (_, name) => {
      const member: unknown = instead(name) ?? Reflect.get(target, name);
      return typeof member === 'function' ? member.bind(target) : member;
    },
  });
}
