/** Derives the timeline of a message from its log: state changes, attempts, and the waits between them. Pure. */
import type { ResponseOf } from '../../api/client.ts';

export type Entry = ResponseOf<'listLogs'>['logs'][number];

export type TimelineItem =
  | { kind: 'change'; entry: Entry }
  | {
      kind: 'attempt';
      number: number;
      startMs: number;
      /** The entry that ended it: DELIVERED or ERROR. Absent while it runs, or if its worker was lost. */
      result?: Entry;
      /** The planned time of the next attempt. */
      nextMs?: number | undefined;
    };

/** `entries`: oldest first, starting with the first. */
export function timelineOf(entries: readonly Entry[]): TimelineItem[] {
  const moments: TimelineItem[] = [];
  let attempts = 0;
  for (const entry of entries) {
    const attempt = moments.findLast((moment) => moment.kind === 'attempt');
    switch (entry.state) {
      case 'ACTIVE':
        attempts += 1;
        moments.push({ kind: 'attempt', number: attempts, startMs: entry.time });
        break;
      case 'DELIVERED':
      case 'ERROR':
        if (attempt && !attempt.result) {
          attempt.result = entry;
          attempt.nextMs = entry.nextDeliveryTime;
        } else moments.push({ kind: 'change', entry });
        break;
      case 'RETRY':
        if (attempt) attempt.nextMs = entry.nextDeliveryTime ?? attempt.nextMs;
        else moments.push({ kind: 'change', entry });
        break;
      default:
        moments.push({ kind: 'change', entry });
    }
  }
  return moments;
}

export interface Segment {
  kind: 'wait' | 'delivered' | 'failed' | 'running';
  fromMs: number;
  toMs: number;
  attempt?: number;
}

/** The timeline as contiguous segments on one axis, up to the end or `nowMs`. */
export function segmentsOf(moments: readonly TimelineItem[], nowMs: number): Segment[] {
  const [first] = moments;
  if (!first) return [];
  const stretches: Segment[] = [];
  let atMs = timeOf(first);
  for (const moment of moments) {
    if (timeOf(moment) > atMs) {
      stretches.push({ kind: 'wait', fromMs: atMs, toMs: timeOf(moment) });
      atMs = timeOf(moment);
    }
    if (moment.kind !== 'attempt') continue;
    const { result, number } = moment;
    // An attempt without a recorded outcome ended no later than the next timeline item.
    const following = moments[moments.indexOf(moment) + 1];
    const toMs = result?.time ?? (following ? timeOf(following) : nowMs);
    const kind = result === undefined ? 'running' : result.state === 'DELIVERED' ? 'delivered' : 'failed';
    stretches.push({ kind, fromMs: atMs, toMs: Math.max(toMs, atMs), attempt: number });
    atMs = Math.max(toMs, atMs);
  }
  return stretches;
}

function timeOf(moment: TimelineItem): number {
  return moment.kind === 'attempt' ? moment.startMs : moment.entry.time;
}
