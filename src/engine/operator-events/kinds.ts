/** The kinds of operator events. */
export const OPERATOR_EVENTS = [
  'message_buried',
  'run_failed',
  'origin_held',
  'schedule_missed',
  'store_filling',
  'store_full',
  'worker_lost',
] as const;

export type OperatorEventKind = (typeof OPERATOR_EVENTS)[number];
