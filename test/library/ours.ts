/**
 * Replaces the official library with ours in files that import it: `import('./file.ts?ours')`. The apps and scenarios that the
 * file imports are loaded again, too.
 */
import { registerHooks } from 'node:module';

const MARK = '?ours';

const sources = new URL('../../packages/workflow/src/', import.meta.url);

/** Files of our library by what is imported of the official one. */
export const OURS: Readonly<Record<string, URL>> = {
  '@upstash/workflow': new URL('index.ts', sources),
  '@upstash/workflow/express': new URL('node.ts', sources),
  '@upstash/workflow/hono': new URL('hono.ts', sources),
  '@upstash/workflow/nextjs': new URL('nextjs.ts', sources),
  '@upstash/workflow/cloudflare': new URL('cloudflare.ts', sources),
};

/** Whether a module with this URL gets our library. */
export function isWithOurs(url: string): boolean {
  return url.endsWith(MARK);
}

/** Scenarios of the official library that say nothing of ours, each with the reason. */
const EXCEPTIONS: Readonly<Record<string, string>> = {
  'keeps what an older trigger fixed, when that asks for it': 'it is about the generation before',
  'calls what answers much': 'the official library cannot take the answer of a call that was left out; ours fetches it',
};

const met = new Set<string>();

/** Exceptions that no scenario is called as. */
export function staleExceptions(): string[] {
  return Object.keys(EXCEPTIONS).filter((title) => !met.has(title));
}

/** `test` for all but the exceptions. */
export function withoutExceptions<T extends (title: string, ...rest: never[]) => void>(test: T): T {
  return new Proxy(test, {
    apply(target, self, [title, ...rest]) {
      if (title in EXCEPTIONS) met.add(title);
      else Reflect.apply(target, self, [title, ...rest]);
    },
  });
}

/** What the module at `url` exports, with our library in place of the official one. */
export async function importWithOurs(url: URL): Promise<unknown> {
  const hooks = registerHooks({
    resolve(specifier, context, next) {
      if (context.parentURL === undefined || !isWithOurs(context.parentURL)) return next(specifier, context);
      const ours = OURS[specifier];
      if (ours) return next(ours.href, context);
      const resolved = next(specifier, context);
      const isOfTests = specifier.startsWith('.') && /\/test\/(library\/apps|workflows)\//.test(resolved.url);
      return isOfTests ? { ...resolved, url: `${resolved.url}${MARK}` } : resolved;
    },
  });
  try {
    return await import(`${url.href}${MARK}`);
  } finally {
    hooks.deregister();
  }
}
