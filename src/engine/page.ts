/** What is a piece of a list, and how is it asked for? */

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
