/**
 * The typed store: one method for each operation (operations/all.ts), grouped by subject. Every method is one
 * transaction, or, for a read, one snapshot. Methods take `nowMs` where time matters, and read no clock. When the promise
 * of a method resolves, the change is durable (P1). All methods throw `StoreUnavailable` when nothing was written and the
 * caller may try again.
 */
import type { Page } from '../engine/lists/page.ts';
import type { StoreBase } from './connection.ts';
import type { OPERATIONS, OperationsIn } from './operations/all.ts';
import type { MergedWrite, PagedRead, Read, Write } from './operations/operation.ts';

type Method<Operation> =
  Operation extends PagedRead<infer _Args, infer _Rows, infer Input, infer Item>
    ? (input: Input) => Promise<Page<Item>>
    : Operation extends Read<infer _Args, infer _Rows, infer Result, infer Input>
      ? (...given: keyof Input extends never ? [] : [input: Input]) => Promise<Result>
      : Operation extends
            | Write<infer _Args, infer _Stored, infer Input, infer Result>
            | MergedWrite<infer _Args, infer _Stored, infer Input, infer Result>
        ? (input: Input) => Promise<Result>
        : never;

type Derived<Files> = { -readonly [M in keyof OperationsIn<Files>]: Method<OperationsIn<Files>[M]> };

export type Operations = { readonly [Noun in keyof typeof OPERATIONS]: Derived<(typeof OPERATIONS)[Noun]> };

export interface Store extends Operations, Omit<StoreBase, 'counts'> {
  /** Resolves when the store reads and saves; rejects when it does not. For `/readyz`. */
  ping(): Promise<void>;
}

/** A store with the members that only the code that opened the store uses, such as the counts. */
export type SqlStore = Store & StoreBase;
