/** Parses the JSON of a checkpoint (contract K 3.2). A large checkpoint is parsed in the JSON thread. */
import { ApiError } from '../../protocol/errors.ts';
import { isObject } from '../../protocol/json-objects.ts';
import { parseJson } from '../requests/json-body.ts';

/** The result of a step is any JSON. A parsed value takes about 50 bytes of memory in addition to its text. */
const VALUES_MAX = 1_000_000;

const UTF8 = new TextEncoder();

export interface ParsedCheckpoint {
  /** The parsed JSON, with each step as JSON text instead of an object. */
  value: unknown;
  /** The texts of the steps in `value`. Each has a buffer of exactly its size, so it can be transferred to another thread. */
  steps: Uint8Array<ArrayBuffer>[];
}

/**
 * Throws `ApiError` 400. A step that is not an object stays unchanged. `othersMax`: the maximum number of JSON values
 * outside the steps, because a result is copied from the JSON thread value by value.
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
  if (countValues(value) > othersMax) {
    throw new ApiError(
      'invalid_body',
      `invalid request body: at most ${othersMax} JSON values besides steps are accepted`,
    );
  }
  return { value, steps };
}

/** The number of members and elements at all levels, plus one for the value itself. A step counts as one. */
function countValues(value: unknown): number {
  if (typeof value !== 'object' || value === null || value instanceof Uint8Array) return 1;
  let values = 1;
  for (const member of Object.values(value)) values += countValues(member);
  return values;
}
