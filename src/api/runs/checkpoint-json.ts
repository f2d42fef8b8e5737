/** Parses the JSON of a checkpoint (contract K 3.2). Runs in the thread that parses the JSON, which may be another thread. */
import { ApiError } from '../../protocol/errors.ts';
import { isObject } from '../../protocol/json-objects.ts';
import { parseJson } from '../requests/json-body.ts';

/** What a step returned is JSON of any kind. Its bytes are limited; each value takes some 50 more while it is read. */
const VALUES_MAX = 1_000_000;

const UTF8 = new TextEncoder();

export interface ParsedCheckpoint {
  /** With the JSON text of each step instead of the step: its result is parsed here only. */
  value: unknown;
  /** These texts, each in a buffer of its own and of just its size. */
  steps: Uint8Array<ArrayBuffer>[];
}

/**
 * Throws `ApiError` 400. A step that is no object stays as it is. `othersMax`: values of all but the steps, since those are
 * passed to the other thread.
 */
export function parseCheckpoint(json: Uint8Array, othersMax: number): ParsedCheckpoint {
  const value = parseJson(json, VALUES_MAX);
  const steps: Uint8Array<ArrayBuffer>[] = [];
  const append = isObject(value) ? value['append'] : undefined;
  for (const element of Array.isArray(append) ? append : []) {
    if (!isObject(element) || !isObject(element['step'])) continue;
    const step = UTF8.encode(JSON.stringify(element['step']));
    element['step'] = step;
    steps.push(step);
  }
  if (valuesIn(value) > othersMax) {
    throw new ApiError(
      'invalid_body',
      `invalid request body: at most ${othersMax} JSON values besides steps are accepted`,
    );
  }
  return { value, steps };
}

/** Members and elements on all levels, and the value itself. A step counts as one. */
function valuesIn(value: unknown): number {
  if (typeof value !== 'object' || value === null || value instanceof Uint8Array) return 1;
  let values = 1;
  for (const member of Object.values(value)) values += valuesIn(member);
  return values;
}
