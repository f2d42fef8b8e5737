/** The reason why an unclaimed message waits, with the same name from its row to the explanation in the API. */
export type WaitState =
  /** Its due time, or a worker: it is in the due index. */
  | 'due'
  /** A delivery slot for its origin: the message is due, but its origin has used up its share, or the worker has no slot. */
  | 'origin'
  /** Its flow-control key: it is in the wait list of the key, due already or later. */
  | 'flow'
  /** Its queue: the messages ahead of it, or, if it was started already, the resume of the paused queue. */
  | 'queue'
  /** The end of an attempt of its project, which has reached its limit of attempts in flight. */
  | 'project';
