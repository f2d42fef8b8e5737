/** A measured value, with an optional reference value. */
export interface Figure {
  name: string;
  value: number;
  unit: 'messages/s' | 'runs/s' | 'ms' | 's' | 'MiB' | 'KiB' | 'messages' | 'runs' | 'frames/s' | '%' | 'connections';
  /** The reference value, measured in the same run. */
  reference?: { name: string; value: number };
}
