/** Relative times, with the exact time as tooltip. */
import { useSyncExternalStore } from 'react';

const UNITS: readonly (readonly [name: string, ms: number])[] = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1_000],
];

/** Returns at most two units, such as `2h 5m`, and below a second milliseconds. */
export function duration(ms: number): string {
  const whole = Math.max(0, ms);
  if (whole < 1_000) return `${Math.round(whole)} ms`;
  const first = UNITS.findIndex(([, unitMs]) => whole >= unitMs);
  const [name, unitMs] = UNITS[first] ?? ['s', 1_000];
  if (name === 's') return `${(whole / unitMs).toFixed(whole < 10_000 ? 1 : 0)} s`;
  const [nextName, nextMs] = UNITS[first + 1] ?? ['s', 1_000];
  const rest = Math.floor((whole % unitMs) / nextMs);
  return `${Math.floor(whole / unitMs)}${name}${rest > 0 ? ` ${rest}${nextName}` : ''}`;
}

/** Formats by time zone, since creating a format takes a hundred times as long as using it. */
const formats = new Map<string | undefined, Intl.DateTimeFormat>();

export function exactTime(atMs: number, timeZone?: string): string {
  let format = formats.get(timeZone);
  if (!format) {
    const zone = timeZone === undefined ? {} : { timeZone };
    format = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium', ...zone });
    formats.set(timeZone, format);
  }
  return format.format(atMs);
}

/** One clock for the page, so that all visible times change together. */
const TICK_MS = 1_000;
const listeners = new Set<() => void>();
let timer: ReturnType<typeof setInterval> | undefined;
let presentMs = Date.now();

function onTick(listener: () => void): () => void {
  if (listeners.size === 0) presentMs = Date.now();
  listeners.add(listener);
  timer ??= setInterval(() => {
    presentMs = Date.now();
    for (const each of listeners) each();
  }, TICK_MS);
  return () => {
    listeners.delete(listener);
    if (listeners.size > 0) return;
    clearInterval(timer);
    timer = undefined;
  };
}

/** The current time, at most a second old. */
export function useNowMs(): number {
  return useSyncExternalStore(onTick, () => presentMs);
}

const ISO_TIME = /(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z)/;

/** A sentence from the server, with its ISO times shown in local format. */
export function Sentence({ children }: { children: string }) {
  return children.split(ISO_TIME).map((part, index) =>
    // Parts with an odd index are times.
    index % 2 === 0 ? (
      part
    ) : (
      // biome-ignore lint/suspicious/noArrayIndexKey: the parts of a sentence do not change their order
      <time key={index} dateTime={part} title={part}>
        {exactTime(Date.parse(part))}
      </time>
    ),
  );
}

export function Time({ atMs }: { atMs: number }) {
  const nowMs = useNowMs();
  const distanceMs = nowMs - atMs;
  const text =
    Math.abs(distanceMs) < 1_000
      ? 'now'
      : distanceMs > 0
        ? `${duration(distanceMs)} ago`
        : `in ${duration(-distanceMs)}`;
  return (
    <time dateTime={new Date(atMs).toISOString()} title={exactTime(atMs)} className="whitespace-nowrap tabular-nums">
      {text}
    </time>
  );
}
