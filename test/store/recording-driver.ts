/** A driver that records the text and the first parameters of each statement that is sent through it. */
import type { Driver, Queries, SqlParam, Transaction } from '../../src/store/driver.ts';

export class RecordingDriver implements Driver {
  readonly params = new Map<string, readonly SqlParam[]>();
  readonly dialect: Driver['dialect'];
  readonly #inner: Driver;

  /** With `manyWriters`, the store also sends the statements that lock rows against other transactions. */
  constructor(inner: Driver, { manyWriters = inner.dialect.manyWriters } = {}) {
    this.#inner = inner;
    this.dialect = { ...inner.dialect, manyWriters };
  }

  transaction: Driver['transaction'] = (work) => this.#inner.transaction((tx) => work(this.#recordedTransaction(tx)));

  read: Driver['read'] = (work) => this.#inner.read((queries) => work(this.#recorded(queries)));

  close(): Promise<void> {
    return this.#inner.close();
  }

  #recordedTransaction(tx: Transaction): Transaction {
    return {
      ...tx,
      ...this.#recorded(tx),
      queryEach: (text, given) => {
        this.#record(text, given[0]);
        return tx.queryEach(text, given);
      },
      send: (text, params) => {
        this.#record(text, params);
        return tx.send(text, params);
      },
      run: (text, params) => {
        this.#record(text, params);
        return tx.run(text, params);
      },
    };
  }

  #recorded(queries: Queries): Queries {
    return {
      query: (text, params) => {
        this.#record(text, params);
        return queries.query(text, params);
      },
    };
  }

  #record(text: string, params: readonly SqlParam[] = []): void {
    if (!this.params.has(text)) this.params.set(text, params);
  }
}
