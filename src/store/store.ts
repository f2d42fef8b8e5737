/**
 * The typed store: what the operations say of themselves (operations/all.ts), by what they are about. Every method is one
 * transaction (reads: one snapshot), is given `nowMs` where time matters, and reads no clock. A promise that resolves
 * says that the change is durable (P1). All throw `StoreUnavailable` when nothing was written and the caller may try again.
 */
import type { Page } from '../engine/lists/page.ts';
import type { StoreUpkeep } from './connection.ts';
import type { NOUNS, OperationsIn } from './operations/all.ts';
import type { MergedWrite, PagedRead, Read, Write } from './operations/operation.ts';

type Method<Operation> =
  Operation extends PagedRead<infer _Args, infer _Rows, infer Given, infer Item>
    ? (given: Given) => Promise<Page<Item>>
    : Operation extends Read<infer _Args, infer _Rows, infer Told, infer Given>
      ? (...given: keyof Given extends never ? [] : [given: Given]) => Promise<Told>
      : Operation extends
            | Write<infer _Args, infer _Answer, infer Given, infer Told>
            | MergedWrite<infer _Args, infer _Answer, infer Given, infer Told>
        ? (given: Given) => Promise<Told>
        : never;

type Derived<Files> = { -readonly [M in keyof OperationsIn<Files>]: Method<OperationsIn<Files>[M]> };

export type Operations = { readonly [Noun in keyof typeof NOUNS]: Derived<(typeof NOUNS)[Noun]> };

export interface Store extends Operations, Omit<StoreUpkeep, 'counts'> {
  /** Resolves when the store reads and saves; rejects when it does not. For `/readyz`. */
  ping(): Promise<void>;
}

/** With what only its makers ask of it. */
export type SqlStore = Store & StoreUpkeep;
