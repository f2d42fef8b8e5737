/** Formats and parses durations and sizes with units. */

const MS_PER_UNIT = { d: 86_400_000, h: 3_600_000, m: 60_000, s: 1000, ms: 1 } as const;

const BYTES_PER_UNIT = {
  B: 1,
  kB: 1000,
  MB: 1000 ** 2,
  GB: 1000 ** 3,
  KiB: 1024,
  MiB: 1024 ** 2,
  GiB: 1024 ** 3,
} as const;

/** The shortest text that `parseDurationMs` (src/protocol/times/durations.ts) reads as `durationMs`. */
export function formatDuration(durationMs: number): string {
  if (durationMs === 0) return '0s';
  let rest = durationMs;
  let text = '';
  for (const [unit, unitMs] of Object.entries(MS_PER_UNIT)) {
    const amount = Math.floor(rest / unitMs);
    if (amount > 0) text += `${amount}${unit}`;
    rest -= amount * unitMs;
  }
  return text;
}

/** Parses sizes such as `1048576`, `1MiB` and `64 kB`. Returns undefined for any other text. */
export function parseBytes(text: string): number | undefined {
  const [, amount, unit] = /^(\d+) ?(B|kB|MB|GB|KiB|MiB|GiB)?$/.exec(text) ?? [];
  if (amount === undefined) return undefined;
  return Number(amount) * BYTES_PER_UNIT[(unit ?? 'B') as keyof typeof BYTES_PER_UNIT];
}

/** Formats a size in the largest binary unit of which the size is a multiple. */
export function formatBytes(bytes: number): string {
  for (const unit of ['GiB', 'MiB', 'KiB'] as const) {
    if (bytes > 0 && bytes % BYTES_PER_UNIT[unit] === 0) return `${bytes / BYTES_PER_UNIT[unit]}${unit}`;
  }
  return `${bytes}`;
}
