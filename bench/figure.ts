/** One measured value, beside what it is held against. */
export interface Figure {
  name: string;
  value: number;
  unit: 'messages/s' | 'runs/s' | 'ms' | 's' | 'MiB' | 'KiB' | 'messages' | 'runs' | 'frames/s' | '%' | 'connections';
  /** What it is held against, measured in the same run. */
  beside?: { name: string; value: number };
}
