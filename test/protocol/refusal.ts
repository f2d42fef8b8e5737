import { ApiError, type ErrorCode } from '../../src/protocol/errors.ts';

/** What `action` is refused with; fails when it is not, or with anything but an `ApiError`. */
export function refusalOf(action: () => unknown): { code: ErrorCode; status: number; message: string } {
  try {
    action();
  } catch (error) {
    if (error instanceof ApiError) return { code: error.code, status: error.status, message: error.message };
    throw error;
  }
  throw new Error('was not refused');
}

/** Runs `action` and swallows an `ApiError`, the only thing that a parser may throw. */
export function onlyRefuses(action: () => unknown): void {
  try {
    action();
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
  }
}

/** A repeatable stream of bytes: a small linear congruential generator, good enough to fill ids in tests. */
export function seededBytes(seed: number): (count: number) => Uint8Array {
  let state = seed >>> 0;
  return (count) =>
    Uint8Array.from({ length: count }, () => {
      state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
      return state >>> 24;
    });
}

/** A header map without a prototype, as the sources make them, from a plain object. */
export function headerMap(entries: Record<string, string[]>): Record<string, string[]> {
  return Object.assign(Object.create(null), entries) as Record<string, string[]>;
}
