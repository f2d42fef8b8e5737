/** Where in the bytes of a client does a COMMIT end? Reads as much of PostgreSQL's frontend protocol as that takes. */

/** A simple query may hold several statements: what counts is the last one. */
const ENDS_WITH_COMMIT = /(?:^|;)\s*(?:commit|end)(?:\s+(?:work|transaction))?\s*;?\s*$/i;
const TYPE_AND_LENGTH = 5;
/** A parameter of many megabytes is not kept to be looked at. Commits, and the statements that name them, are short. */
const KEPT_MAX = 64 * 1024;

/**
 * Follows one connection from its first byte. `feed` answers the index, in the chunk that it is given, just behind the
 * message that makes the server commit: a `Query`, or the `Sync` after the `Execute` of a statement that was parsed
 * as a commit. A connection with TLS cannot be read.
 */
export class CommitWatch {
  #isStarted = false;
  /** The message that has begun and is not whole; of a long one only its head. */
  #head = Buffer.alloc(0);
  /** What is still to come of a message whose head is kept. */
  #missing = 0;
  readonly #commits = new Set<string>();
  readonly #portals = new Set<string>();
  #isCommitting = false;

  /** Answers each end of a commit in `chunk`, in their order. */
  feed(chunk: Buffer): number[] {
    const ends: number[] = [];
    let at = 0;
    while (at < chunk.length) {
      at += this.#take(chunk.subarray(at));
      if (this.#missing === 0 && this.#isWhole()) {
        if (this.#read()) ends.push(at);
        this.#head = Buffer.alloc(0);
      }
    }
    return ends;
  }

  /** Takes what belongs to the current message; answers how many bytes that was. */
  #take(bytes: Buffer): number {
    const prefix = this.#isStarted ? TYPE_AND_LENGTH : 4;
    if (this.#head.length < prefix) {
      const taken = bytes.subarray(0, prefix - this.#head.length);
      this.#head = Buffer.concat([this.#head, taken]);
      if (this.#head.length === prefix) this.#missing = this.#head.readUInt32BE(prefix - 4) - 4;
      return taken.length;
    }
    const taken = bytes.subarray(0, this.#missing);
    this.#missing -= taken.length;
    const room = KEPT_MAX - this.#head.length;
    if (room > 0) this.#head = Buffer.concat([this.#head, taken.subarray(0, room)]);
    return taken.length;
  }

  #isWhole(): boolean {
    return this.#head.length >= (this.#isStarted ? TYPE_AND_LENGTH : 4);
  }

  /** Whether the message makes the server commit. */
  #read(): boolean {
    if (!this.#isStarted) {
      // A request for encryption or for a cancel comes before, in the same form, and with codes of its own.
      this.#isStarted = this.#head.readUInt16BE(4) !== 1234;
      return false;
    }
    const [first = '', second = ''] = this.#head.toString('latin1', TYPE_AND_LENGTH).split('\0');
    switch (String.fromCharCode(this.#head[0] ?? 0)) {
      case 'Q':
        return ENDS_WITH_COMMIT.test(first);
      case 'P':
        if (ENDS_WITH_COMMIT.test(second)) this.#commits.add(first);
        else this.#commits.delete(first);
        return false;
      case 'B':
        if (this.#commits.has(second)) this.#portals.add(first);
        else this.#portals.delete(first);
        return false;
      case 'E':
        if (this.#portals.has(first)) this.#isCommitting = true;
        return false;
      case 'S': {
        const isCommitting = this.#isCommitting;
        this.#isCommitting = false;
        return isCommitting;
      }
      default:
        return false;
    }
  }
}
