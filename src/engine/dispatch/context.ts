/** The context that the parts of the dispatcher share to claim messages, attempt them and settle their outcomes. */
import type { Store } from '../../store/store.ts';
import type { EngineDeps } from '../deps.ts';
import type { DueLoop } from '../loops/due-loop.ts';
import type { OperatorEvents } from '../operator-events/events.ts';
import type { Reports } from '../reports.ts';
import type { JournalBodies } from '../runs/journal-bodies.ts';
import type { Fence } from '../workers/fence.ts';
import type { Numbers } from '../workers/numbers.ts';

export interface DeliveryContext
  extends Pick<
    EngineDeps,
    'worker' | 'delivery' | 'clock' | 'randomness' | 'log' | 'spans' | 'settings' | 'endOfTurn'
  > {
  store: {
    messages: Pick<Store['messages'], 'claim' | 'settle' | 'release' | 'waitingBacklogs'>;
    runs: Pick<Store['runs'], 'findRun' | 'findRecords' | 'readJournal'>;
  };
  /** Whether the store commits claims in transactions of their own. */
  areClaimsSeparate: boolean;
  fence: Fence;
  numbers: Numbers;
  bodies: JournalBodies;
  /** The loop that cancels the remaining messages of ended runs, and of new runs whose resumption was not completed. */
  cancellations: Pick<DueLoop, 'noteNext'>;
  reports: Reports;
  operatorEvents?: Pick<OperatorEvents, 'kindOf'> | undefined;
}
