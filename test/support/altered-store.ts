/** How does a test make one method of a store do something else, and leave the rest as it is? */
import type { Store } from '../../src/store/store.ts';

type Parts = { [P in keyof Store]: Store[P] extends (...args: never[]) => unknown ? never : P }[keyof Store];

type AllOf<Part> = (Part extends unknown ? (part: Part) => void : never) extends (all: infer All) => void ? All : never;

/** Those of the store itself, and of all its parts: their names are unique. */
export type StoreMethods = Omit<Store, Parts> & AllOf<Store[Parts]>;

/** `store` with `methods` in place of its own, each in the part that has it; the others are called on the store itself. */
export function alteredStore<S extends Store>(store: S, methods: Partial<StoreMethods>): S {
  const instead = (name: string | symbol): unknown => Reflect.get(methods, name);
  return overridden(store, (name) => {
    const member: unknown = Reflect.get(store, name);
    return typeof member === 'object' && member !== null ? overridden(member, instead) : instead(name);
  });
}

/** A member of `target` is what `instead` says, unless that is `undefined`. */
function overridden<T extends object>(target: T, instead: (name: string | symbol) => unknown): T {
  return new Proxy(target, {
    get: (_, name) => {
      const member: unknown = instead(name) ?? Reflect.get(target, name);
      return typeof member === 'function' ? member.bind(target) : member;
    },
  });
}
