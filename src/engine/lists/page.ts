/** A page of a list, and the request for one. */

export interface PageRequest {
  /** Opaque position after the last item of the previous page. */
  cursor?: string;
  count: number;
  order: 'latestFirst' | 'earliestFirst';
  /** The page ends before it exceeds this many bytes, but has at least one item. Absent: 16 MiB. */
  bytesMax?: number;
}

export interface Page<T> {
  items: T[];
  /** Absent on the last page. */
  cursor?: string;
}
