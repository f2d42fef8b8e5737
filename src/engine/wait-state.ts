/** What does an unclaimed message wait for? One word for it, from its row to the answer that explains it. */
export type WaitState =
  /** Its time, or a worker: it is in the due index. */
  | 'due'
  /** A delivery slot for its origin: it is due, but its origin has its share of attempts, or the worker is full. */
  | 'origin'
  /** Its flow-control key: it is in the key's wait list, whether it is due already or later. */
  | 'flow'
  /** Its queue: its turn there, or, if it was started already, the end of the queue's pause. */
  | 'queue'
  /** The end of an attempt of its project, which has as many in flight as it may. */
  | 'project';
