/** Puts together the engine's parts for workflow runs, and the commands about runs that clients may give. */
import type { Store } from '../../store/store.ts';
import { type CheckpointDeps, Checkpoints } from '../calls/checkpoints.ts';
import type { CheckpointCommands } from '../calls/commands.ts';
import type { DueLoop } from '../due-loop.ts';
import type { OriginLine } from '../lanes/origin-line.ts';
import type { AcceptContext } from '../messages/accept.ts';
import type { Dispatcher } from '../messages/dispatcher.ts';
import type { Intake } from '../messages/intake.ts';
import type { Millis, ProjectId } from '../model.ts';
import type { Clock, EventLog, Randomness } from '../ports.ts';
import type { Reports } from '../reports.ts';
import type { EngineSettings } from '../settings.ts';
import type { Numbers } from '../workers/numbers.ts';
import { ActiveRunCommands } from './active-run-commands.ts';
import { ActiveRuns } from './active-runs.ts';
import { RunCanceller } from './cancel-many.ts';
import type { DeadRunCommands } from './dead-run-store.ts';
import { DeadRuns } from './dead-runs.ts';
import type { EndingDeps } from './endings.ts';
import type { JournalBodies } from './journal-bodies.ts';
import { RunLogs } from './logs.ts';
import { type ParkedRunCommands, ParkedRuns } from './parked.ts';
import { Publisher } from './publish.ts';
import type { RunCommands, RunLogCommands, WaiterCommands } from './run-commands.ts';
import { waiterLoop } from './waiter-loop.ts';
import { RunWaits } from './waits.ts';

/** All commands and reads about runs, except publishing. */
export interface WorkflowCommands
  extends RunCommands,
    RunLogCommands,
    WaiterCommands,
    DeadRunCommands,
    ParkedRunCommands,
    CheckpointCommands {}

export interface WorkflowDeps {
  store: Store;
  clock: Clock;
  randomness: Randomness;
  log: EventLog;
  settings: EngineSettings;
  numbers: Numbers;
  bodies: JournalBodies;
  reports: Reports;
  intake: Intake;
  dispatcher: CheckpointDeps['dispatcher'] & Pick<Dispatcher, 'noteRunEnd' | 'noteWaitingLine'>;
  /** Cancels what is left of runs that are over, or were not made whole. */
  left: DueLoop;
  contextOf(projectId: ProjectId): AcceptContext;
}

export class Workflows {
  readonly publisher: Publisher;
  /** Ends waits at their deadlines. */
  readonly waiters: DueLoop;
  readonly commands: WorkflowCommands;

  constructor(deps: WorkflowDeps) {
    const { store, clock, dispatcher } = deps;
    const noteRunEnd: EndingDeps['noteRunEnd'] = (runKey, isMoreLeft) => dispatcher.noteRunEnd(runKey, isMoreLeft);
    const active = new ActiveRuns(store);
    this.publisher = new Publisher({ ...deps, active });
    this.waiters = waiterLoop(deps);
    const noteDeadline = (atMs: Millis): void => this.waiters.noteNext(atMs);
    const noteWaitingLine = (line: OriginLine): void => dispatcher.noteWaitingLine(line);
    const runs = new ActiveRunCommands({ ...deps, active, noteRunEnd });
    const waits = new RunWaits({ ...deps, active, noteDeadline, noteWaitingLine });
    const logs = new RunLogs(store, clock);
    const canceller = new RunCanceller({ ...deps, active, noteRunEnd });
    const parked = new ParkedRuns(deps);
    const noteLeft = (): void => deps.left.noteNext(0);
    const dead = new DeadRuns({ ...deps, noteDeadline, noteWaitingLine, noteLeft });
    const checkpoints = new Checkpoints({ ...deps, active, publisher: this.publisher, waits });
    this.commands = {
      findActiveRun: runs.findActiveRun.bind(runs),
      completeRun: runs.completeRun.bind(runs),
      cancelRun: runs.cancelRun.bind(runs),
      readJournal: runs.readJournal.bind(runs),
      wait: waits.wait.bind(waits),
      notify: waits.notify.bind(waits),
      notifyRun: waits.notifyRun.bind(waits),
      listWaiters: waits.listWaiters.bind(waits),
      listRuns: logs.listRuns.bind(logs),
      explainRun: logs.explainRun.bind(logs),
      cancelRuns: canceller.cancelRuns.bind(canceller),
      cancelRunsMatching: canceller.cancelRunsMatching.bind(canceller),
      resumeParkedRun: parked.resumeParkedRun.bind(parked),
      resumeParkedRuns: parked.resumeParkedRuns.bind(parked),
      resumeRun: dead.resumeRun.bind(dead),
      restartRun: dead.restartRun.bind(dead),
      repeatFailureCallback: dead.repeatFailureCallback.bind(dead),
      hasCall: checkpoints.hasCall.bind(checkpoints),
      checkpoint: checkpoints.checkpoint.bind(checkpoints),
    };
  }
}
