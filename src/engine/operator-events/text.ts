/** The body of an operator event: small JSON with one plain sentence, and no data of a project's users. */
import type { Millis } from '../model.ts';
import type { OperatorEventKind } from './kinds.ts';
import type { Tally } from './model.ts';

const SENTENCES: Readonly<Record<OperatorEventKind, (count: number) => string>> = {
  message_buried: (count) => `${many(count, 'message')} went into the DLQ`,
  run_failed: (count) => `${many(count, 'workflow run')} failed and went into the DLQ`,
  origin_held: (count) => `${many(count, 'origin')} held back, since attempts end without a response`,
  schedule_missed: (count) => `${many(count, 'schedule time')} missed or met late`,
  store_filling: () => 'the store is filling up',
  store_full: () => 'the store is full and takes nothing',
  worker_lost: (count) => `${many(count, 'worker')} ended without having been stopped`,
};

export type PublishedTally = Pick<Tally, 'kind' | 'count' | 'firstAtMs' | 'lastAtMs' | 'example'>;

/**
 * The body of the message. `project`: the name of the project; undefined if the event concerns the whole server. `cell`:
 * the name of the cell, if there are several. Times are Unix times in ms.
 */
export function eventBody(tally: PublishedTally, project: string | undefined, cell?: string): Uint8Array {
  const { kind, count, firstAtMs: firstAt, lastAtMs: lastAt, example } = tally;
  const scope = [cell && `cell ${cell}`, project && `project ${project}`].filter((part) => part !== undefined);
  const last = count > 1 ? `, the last at ${timeOf(lastAt)}` : '';
  const text = `${[...scope, ''].join(': ')}${SENTENCES[kind](count)}; the first: ${example}, at ${timeOf(firstAt)}${last}`;
  const event = {
    kind,
    project: project ?? null,
    ...(cell !== undefined && { cell }),
    count,
    firstAt,
    lastAt,
    example,
    text,
  };
  return new TextEncoder().encode(JSON.stringify(event));
}

function many(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}

function timeOf(ms: Millis): string {
  return new Date(ms).toISOString().replace(/\.\d+Z$/, 'Z');
}
