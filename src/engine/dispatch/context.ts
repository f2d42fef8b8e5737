/** What a worker needs to claim messages, attempt them and settle their outcomes. */
import type { Store } from '../../store/store.ts';
import type { DueLoop } from '../loops/due-loop.ts';
import type { WorkerId } from '../model.ts';
import type { OperatorEvents } from '../operator-events/events.ts';
import type { Clock, Delivery, EventLog, Observer, Randomness } from '../ports.ts';
import type { Reports } from '../reports.ts';
import type { JournalBodies } from '../runs/journal-bodies.ts';
import type { EngineSettings } from '../settings.ts';
import type { Fence } from '../workers/fence.ts';
import type { Numbers } from '../workers/numbers.ts';

export interface DeliveryContext {
  store: {
    messages: Pick<Store['messages'], 'claim' | 'settle' | 'release' | 'waitingLines'>;
    runs: Pick<Store['runs'], 'findRun' | 'findRecords' | 'readJournal'>;
  };
  /** Whether the store commits claims in transactions of their own. */
  areClaimsApart?: boolean;
  worker: WorkerId;
  fence: Fence;
  numbers: Numbers;
  bodies: JournalBodies;
  /** Cancels what is left of runs. */
  left: Pick<DueLoop, 'noteNext'>;
  delivery: Delivery;
  clock: Clock;
  randomness: Randomness;
  log: EventLog;
  reports: Reports;
  operatorEvents?: Pick<OperatorEvents, 'kindOf'> | undefined;
  spans?: Observer | undefined;
  settings: EngineSettings;
  endOfTurn?: () => Promise<void>;
}
