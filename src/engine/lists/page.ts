/** A page of a list, and the request for one. */

export interface PageRequest {
  /** Opaque position after the last item of the previous page. */
  cursor?: string;
  count: number;
  order: 'latestFirst' | 'earliestFirst';
  /** The maximum bytes of the page, which has at least one item, however large. Absent: 16 MiB. */
  bytesMax?: number;
}

export interface Page<T> {
  items: T[];
  /** Absent on the last page. */
  cursor?: string;
}
