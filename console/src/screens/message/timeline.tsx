/** The timeline of a message, with the response to each attempt. */
import { StateBadge } from '../../parts/badge.tsx';
import { Body } from '../../parts/body.tsx';
import { Facts } from '../../parts/panel.tsx';
import { duration, exactTime, Time, useNowMs } from '../../parts/time.tsx';
import { textOrBytes } from './content.ts';
import { type Entry, type Segment, segmentsOf, type TimelineItem } from './timeline-items.ts';

export function Timeline({ items, isFinished }: { items: readonly TimelineItem[]; isFinished: boolean }) {
  return (
    <div className="flex flex-col gap-4">
      <Axis items={items} isFinished={isFinished} />
      <ol className="flex flex-col border-l border-line">
        {items.map((item) => (
          <li
            key={item.kind === 'attempt' ? `attempt ${item.number}` : `${item.entry.state} ${item.entry.time}`}
            className="relative pb-4 pl-5 last:pb-0"
          >
            <span
              aria-hidden="true"
              className="absolute top-1.5 -left-1 size-2 rounded-full border border-panel bg-quiet"
            />
            {item.kind === 'attempt' ? (
              <Attempt attempt={item} isLast={item === items.at(-1)} />
            ) : (
              <Change entry={item.entry} />
            )}
          </li>
        ))}
      </ol>
    </div>
  );
}

function Change({ entry: { state, time, nextDeliveryTime, error } }: { entry: Entry }) {
  return (
    <div className="flex flex-wrap items-center gap-x-3 gap-y-1">
      <StateBadge state={state} />
      <At atMs={time} />
      {nextDeliveryTime !== undefined && (
        <span>
          first attempt <Time atMs={nextDeliveryTime} />
        </span>
      )}
      {error !== undefined && <span className="text-bad">{error}</span>}
    </div>
  );
}

function Attempt({ attempt, isLast }: { attempt: TimelineItem & { kind: 'attempt' }; isLast: boolean }) {
  const { number, startMs, result, nextMs } = attempt;
  const { responseStatus, error } = result ?? {};
  return (
    <div className="flex flex-col gap-2">
      <div className="flex flex-wrap items-center gap-x-3 gap-y-1">
        <span className="font-medium">Attempt {number}</span>
        {result ? <StateBadge state={result.state} /> : isLast && <StateBadge state="ACTIVE" />}
        {responseStatus !== undefined && <span className="font-mono">{responseStatus}</span>}
        {result && <span className="tabular-nums">{duration(result.time - startMs)}</span>}
        <At atMs={startMs} />
      </div>
      {error !== undefined && <p className="break-words text-bad">{error}</p>}
      {result && <ResponseDetails entry={result} />}
      {isLast && nextMs !== undefined && (
        <p className="text-quiet">
          Next attempt <Time atMs={nextMs} />, {exactTime(nextMs)}
        </p>
      )}
    </div>
  );
}

function ResponseDetails({ entry: { responseBody, responseHeaders = {} } }: { entry: Entry }) {
  const headers = Object.entries(responseHeaders);
  if (responseBody === undefined && headers.length === 0) return null;
  const body = responseBody === undefined ? undefined : textOrBytes(responseBody);
  return (
    <div className="flex flex-col gap-2">
      {body && <Body {...body} />}
      {headers.length > 0 && (
        <details>
          <summary className="text-quiet">{headers.length} response headers</summary>
          <div className="pt-2 font-mono text-xs">
            <Facts facts={headers.map(([name, values]) => [name, values.join(', ')])} />
          </div>
        </details>
      )}
    </div>
  );
}

function At({ atMs }: { atMs: number }) {
  return (
    <span className="text-quiet">
      {exactTime(atMs)} · <Time atMs={atMs} />
    </span>
  );
}

const SEGMENT_CLASSES: Record<Segment['kind'], string> = {
  wait: 'hatched text-quiet',
  delivered: 'bg-good',
  failed: 'bg-bad',
  running: 'bg-busy',
};

/** The minimum width of a segment, so that an attempt of milliseconds is visible among waits of days. */
const WIDTH_MIN_PX = 4;

function Axis({ items, isFinished }: { items: readonly TimelineItem[]; isFinished: boolean }) {
  const nowMs = useNowMs();
  const segments = segmentsOf(items, nowMs);
  const first = segments[0];
  if (!first) return null;
  const endMs = isFinished ? (segments.at(-1)?.toMs ?? nowMs) : nowMs;
  const wait: Segment[] =
    endMs > (segments.at(-1)?.toMs ?? endMs) ? [{ kind: 'wait', fromMs: segments.at(-1)?.toMs ?? 0, toMs: endMs }] : [];
  return (
    <div>
      <div className="flex h-5 w-full overflow-hidden rounded border border-line" aria-hidden="true">
        {[...segments, ...wait].map((segment) => (
          <span
            key={segment.fromMs + segment.kind}
            title={`${segment.attempt ? `attempt ${segment.attempt}` : 'wait'}: ${duration(segment.toMs - segment.fromMs)}`}
            className={`min-w-0 ${SEGMENT_CLASSES[segment.kind]}`}
            style={{ flexGrow: segment.toMs - segment.fromMs, flexBasis: WIDTH_MIN_PX }}
          />
        ))}
      </div>
      <p className="flex justify-between text-xs text-quiet">
        <span>{exactTime(first.fromMs)}</span>
        <span>{duration(endMs - first.fromMs)} in total</span>
      </p>
    </div>
  );
}
