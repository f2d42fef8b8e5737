/** Wraps a client and records which methods were called, so that a test can prove that it called all methods. */

type Method = (...args: never[]) => unknown;

export class Driven<C extends object> {
  readonly client: C;
  readonly #called = new Set<string>();
  /** The client and the resources that its methods returned, by the prefix of their methods' names. */
  readonly #given = new Map<string, object>();

  constructor(client: C) {
    this.#given.set('', client);
    this.client = this.#watch(client, '');
  }

  /** The methods of the client and its resources (such as `dlq.retry`) that were neither called nor `ignored`. */
  missed(ignored: (name: string) => boolean = () => false): string[] {
    const names = [...this.#given].flatMap(([prefix, object]) => methodsOf(object, prefix));
    return names.filter((name) => !this.#called.has(name) && !ignored(name));
  }

  #watch<T extends object>(target: T, prefix: string): T {
    return new Proxy(target, {
      get: (object, key) => {
        const value: unknown = Reflect.get(object, key, object);
        if (typeof key === 'symbol' || !isPublic(object, key)) return value;
        if (typeof value === 'function') return this.#method(value as Method, object, `${prefix}${key}`);
        return isResource(value) ? this.#watch(value, `${prefix}${key}.`) : value;
      },
    });
  }

  #method(method: Method, object: object, name: string): Method {
    return (...args) => {
      this.#called.add(name);
      const result = method.apply(object, args);
      if (!isResource(result)) return result;
      this.#given.set(`${name}.`, result);
      return this.#watch(result, `${name}.`);
    };
  }
}

/** Whether `key` is a member of the class of `object`, not a field of the instance. */
function isPublic(object: object, key: string): boolean {
  return key !== 'constructor' && Object.hasOwn(Object.getPrototypeOf(object), key);
}

/** An object of one of the client's own classes that is not the promise of a response. */
function isResource(value: unknown): value is object {
  if (typeof value !== 'object' || value === null || value instanceof Promise) return false;
  return Object.getPrototypeOf(value) !== Object.prototype;
}

function methodsOf(object: object, prefix: string): string[] {
  const names = Object.getOwnPropertyNames(Object.getPrototypeOf(object)).filter((name) => name !== 'constructor');
  return names.flatMap((name) => {
    const value: unknown = Reflect.get(object, name);
    if (typeof value === 'function') return [`${prefix}${name}`];
    return isResource(value) ? methodsOf(value, `${prefix}${name}.`) : [];
  });
}
