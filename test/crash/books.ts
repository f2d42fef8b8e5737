/** All that a crash test keeps outside the server. */
import { CallbackBook } from './callback-book.ts';
import { LaneBook } from './lane-book.ts';
import { Ledger } from './ledger.ts';

export interface Books {
  ledger: Ledger;
  callbacks: CallbackBook;
  lanes: LaneBook;
}

export function openBooks(): Books {
  return { ledger: new Ledger(), callbacks: new CallbackBook(), lanes: new LaneBook() };
}
