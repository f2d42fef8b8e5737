/** What an unclaimed message waits for. One term for it, from its row to the explanation in the API. */
export type WaitState =
  /** Its due time, or a worker: it is in the due index. */
  | 'due'
  /** A delivery slot for its origin: it is due, but its origin has used up its share of attempts, or the worker is full. */
  | 'origin'
  /** Its flow-control key: it is in the wait list of the key, due already or later. */
  | 'flow'
  /** Its queue: the messages ahead of it, or, if it was started already, the end of the pause of the queue. */
  | 'queue'
  /** The end of an attempt of its project, which has reached its limit of attempts in flight. */
  | 'project';
