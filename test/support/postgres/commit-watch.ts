/** Finds the end of each COMMIT in the bytes of a client, by parsing PostgreSQL's frontend protocol. */

/** A simple query may contain several statements: the last one counts. */
const ENDS_WITH_COMMIT = /(?:^|;)\s*(?:commit|end)(?:\s+(?:work|transaction))?\s*;?\s*$/i;
const TYPE_AND_LENGTH = 5;
/** Longer messages are not kept. A commit, or a message that refers to a prepared commit, is always shorter. */
const KEPT_MAX = 64 * 1024;

/**
 * Parses one connection from its first byte. `feed` returns the index in its chunk after each message that makes the server
 * commit: a `Query`, or the `Sync` after the `Execute` of a statement that was parsed as a commit. Cannot read TLS.
 */
export class CommitWatch {
  #isStarted = false;
  /** The start of an incomplete message. */
  #head = Buffer.alloc(0);
  /** The number of missing bytes of the incomplete message. */
  #missing = 0;
  readonly #commits = new Set<string>();
  readonly #portals = new Set<string>();
  #isCommitting = false;

  /** Returns the end of each commit in `chunk`, in order. */
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

  /** Takes the bytes of the current message; returns their number. */
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
      // Requests for encryption or a cancel come first, in the same format, with special codes.
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
