/** The reason why an unclaimed message waits, under the same name in its row and in the explanation of the API. */
export type WaitState =
  /** The message waits for its due time or for a worker, and is in the due index. */
  | 'due'
  /** The message is due and waits for a slot: its origin has used up its share, or the worker has no free slot. */
  | 'origin'
  /** The message is in the wait list of its flow-control key; it is due already or later. */
  | 'flow'
  /**
   * The message waits for the messages ahead of it in its queue. A started message waits until its paused queue is
   * resumed.
   */
  | 'queue'
  /** The message waits until an attempt of its project ends: the project has reached its limit of attempts in flight. */
  | 'project';
