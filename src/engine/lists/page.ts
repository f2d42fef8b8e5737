/** What is a page of a list, and how does a client ask for it? */

export interface PageRequest {
  /** Opaque position after the last item of the page before. */
  cursor?: string;
  count: number;
  order: 'latestFirst' | 'earliestFirst';
  /** The page ends before it has more, but has one item at least. Absent: 16 MiB. */
  bytesMax?: number;
}

export interface Page<T> {
  items: T[];
  /** Absent on the last page. */
  cursor?: string;
}
