/** A state as a coloured badge. The word is always shown, since a colour alone is not accessible. */
export type Tone = 'good' | 'bad' | 'warn' | 'busy' | 'quiet';

const TONES: Record<Tone, string> = {
  good: 'text-good',
  bad: 'text-bad',
  warn: 'text-warn',
  busy: 'text-busy',
  quiet: 'text-quiet',
};

const TONE_OF_STATE: Record<string, Tone> = {
  CREATED: 'quiet',
  ACTIVE: 'busy',
  RETRY: 'warn',
  ERROR: 'bad',
  IN_PROGRESS: 'busy',
  DELIVERED: 'good',
  FAILED: 'bad',
  CANCEL_REQUESTED: 'warn',
  CANCELED: 'quiet',
  RUN_STARTED: 'busy',
  RUN_SUCCESS: 'good',
  RUN_FAILED: 'bad',
  RUN_CANCELED: 'quiet',
  STEP_SUCCESS: 'good',
  STEP_RETRY: 'warn',
  STEP_PARKED: 'warn',
  STEP_FAILED: 'bad',
  STEP_PROGRESS: 'busy',
  STEP_CANCELED: 'quiet',
  SUCCESS: 'good',
  FAIL: 'bad',
};

export function Badge({ tone, children }: { tone: Tone; children: React.ReactNode }) {
  return (
    <span
      className={`inline-flex max-w-full items-center gap-1.5 rounded-full border border-line bg-panel px-2 py-px text-xs font-medium whitespace-nowrap ${TONES[tone]}`}
    >
      <span aria-hidden="true" className="size-1.5 shrink-0 rounded-full bg-current" />
      <span className="truncate" title={typeof children === 'string' ? children : undefined}>
        {children}
      </span>
    </span>
  );
}

/** The name of a state in the console; `RUN_STARTED` is shown as "started". */
const NAMES: Record<string, string> = {
  FAILED: 'dead',
  CANCELED: 'cancelled',
  RUN_CANCELED: 'cancelled',
  STEP_CANCELED: 'cancelled',
  STEP_PROGRESS: 'in progress',
};

export function StateBadge({ state }: { state: string }) {
  const name = state
    .replace(/^(RUN|STEP)_/, '')
    .replaceAll('_', ' ')
    .toLowerCase();
  return <Badge tone={TONE_OF_STATE[state] ?? 'quiet'}>{NAMES[state] ?? name}</Badge>;
}
