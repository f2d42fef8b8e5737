/** Derives the timeline of a message from its log: state changes, attempts, and the waits between them. Pure. */
import type { ResponseOf } from '../../api/client.ts';

export type Entry = ResponseOf<'listLogs'>['logs'][number];

export type TimelineItem =
  | { kind: 'change'; entry: Entry }
  | {
      kind: 'attempt';
      number: number;
      startMs: number;
      /**
       * The entry that ended the attempt: DELIVERED or ERROR. Absent while the attempt runs, or if its worker was lost.
       */
      result?: Entry;
      /** The planned time of the next attempt. */
      nextMs?: number | undefined;
    };

/** Expects `entries` oldest first, starting with the first entry of the message. */
export function timelineOf(entries: readonly Entry[]): TimelineItem[] {
  const items: TimelineItem[] = [];
  let attempts = 0;
  for (const entry of entries) {
    const attempt = items.findLast((item) => item.kind === 'attempt');
    switch (entry.state) {
      case 'ACTIVE':
        attempts += 1;
        items.push({ kind: 'attempt', number: attempts, startMs: entry.time });
        break;
      case 'DELIVERED':
      case 'ERROR':
        if (attempt && !attempt.result) {
          attempt.result = entry;
          attempt.nextMs = entry.nextDeliveryTime;
        } else items.push({ kind: 'change', entry });
        break;
      case 'RETRY':
        if (attempt) attempt.nextMs = entry.nextDeliveryTime ?? attempt.nextMs;
        else items.push({ kind: 'change', entry });
        break;
      default:
        items.push({ kind: 'change', entry });
    }
  }
  return items;
}

export interface Segment {
  kind: 'wait' | 'delivered' | 'failed' | 'running';
  fromMs: number;
  toMs: number;
  attempt?: number;
}

/** The timeline as contiguous segments on one axis, up to the end or `nowMs`. */
export function segmentsOf(items: readonly TimelineItem[], nowMs: number): Segment[] {
  const [first] = items;
  if (!first) return [];
  const segments: Segment[] = [];
  let atMs = timeOf(first);
  for (const item of items) {
    if (timeOf(item) > atMs) {
      segments.push({ kind: 'wait', fromMs: atMs, toMs: timeOf(item) });
      atMs = timeOf(item);
    }
    if (item.kind !== 'attempt') continue;
    const { result, number } = item;
    // An attempt without a recorded outcome ended no later than the next timeline item.
    const following = items[items.indexOf(item) + 1];
    const toMs = result?.time ?? (following ? timeOf(following) : nowMs);
    const kind = result === undefined ? 'running' : result.state === 'DELIVERED' ? 'delivered' : 'failed';
    segments.push({ kind, fromMs: atMs, toMs: Math.max(toMs, atMs), attempt: number });
    atMs = Math.max(toMs, atMs);
  }
  return segments;
}

function timeOf(item: TimelineItem): number {
  return item.kind === 'attempt' ? item.startMs : item.entry.time;
}
