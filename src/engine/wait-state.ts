/** What does a message wait for that nobody has claimed? One word from its row to what a client is told of it. */
export type WaitState =
  /** Its time, or a worker: it is in the due index. */
  | 'due'
  /** It is due, but its origin has its share of attempts or the worker is full: a slot for its origin. */
  | 'origin'
  /** Its flow-control key, which has it whether it is ready or becomes so later. */
  | 'flow'
  /** Its queue: its turn there, or, if it was started, that the queue is resumed. */
  | 'queue'
  /** An attempt of its project to end: there are as many in flight as there may be. */
  | 'project';
