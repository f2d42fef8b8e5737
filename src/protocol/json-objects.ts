/** Checks that parsed values are JSON objects. */
import { invalidBody } from './errors.ts';

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The members of an object in a request body. Other values throw `invalid_body` (400) with the reason `otherwise`. */
export function objectOf(value: unknown, otherwise: string): Record<string, unknown> {
  if (!isObject(value)) throw invalidBody(otherwise);
  return value;
}
