/** What is a page of a list, and how does a client ask for it? */

export interface PageRequest {
  /** Opaque position after the last item of the page before. */
  cursor?: string;
  count: number;
  order: 'latestFirst' | 'earliestFirst';
}

export interface Page<T> {
  items: T[];
  /** Absent on the last page. */
  cursor?: string;
}
