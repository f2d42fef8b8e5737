/** What workflows and their clients did and heard, kept outside of everything that can crash. */

import type { MessageId, Millis } from '../../src/engine/model.ts';
import type { StartedRun } from '../../src/engine/runs/dead/dead-run-store.ts';
import type { Request } from './workflow-client.ts';
import type { DeliveredEntry, Delivery } from './workflow-library.ts';
import type { Program } from './workflow-programs.ts';

/** A run, as those name it who know when it began. */
export interface RunName {
  runId: string;
  createdAtMs: Millis;
}

export interface Trigger {
  runId: string;
  program: Program;
  request: Request;
  /** What the first answer said. */
  messageId?: MessageId;
  createdAtMs?: Millis;
}

export interface Ending {
  kind: 'complete' | 'cancel';
  runId: string;
  /** Absent: whichever run has the id. */
  createdAtMs: Millis | undefined;
  request: Request;
}

export interface WaitNote extends RunName {
  stepId: number;
  eventId: string;
  request: Request;
}

export interface Notification {
  eventId: string;
  /** Absent: to all who wait. */
  run: RunName | undefined;
  /** What was sent: nobody else sends the same. */
  event: string;
  request: Request;
  /** The answer says that it is kept for a wait to come. */
  isSaved?: boolean;
}

/** A failed run that was to be resumed or restarted. */
export interface Revival {
  how: 'resumeRun' | 'restartRun';
  dlqId: string;
  request: Request;
  started?: StartedRun;
}

/** An entry that a checkpoint was told to be in the journal. */
export interface KeptEntry {
  runId: string;
  messageId: MessageId;
  /** With which step its call goes on; absent: with none. */
  text: string | undefined;
}

export class WorkflowNotes {
  readonly kept: KeptEntry[] = [];
  readonly triggers: Trigger[] = [];
  readonly endings: Ending[] = [];
  readonly waits: WaitNote[] = [];
  readonly notifications: Notification[] = [];
  readonly revivals: Revival[] = [];
  /** Requests to have parked runs tried again. */
  readonly resumes: Request[] = [];
  readonly failuresTold: Delivery[] = [];
  /** Journals that were fetched, up to the entry that they were fetched for. */
  readonly fetched: { delivery: Delivery; entries: DeliveredEntry[] }[] = [];
  /** Journals up to the entry of a message that was handed to a call. */
  readonly handed: { delivery: Delivery; entries: DeliveredEntry[] }[] = [];
  /** Failures that a call went on after. */
  failedWithin = 0;
  /** Last steps that were sent with the end of their run. */
  lastSteps = 0;
  /** Fetched for entries that they do not have. */
  readonly missing: Delivery[] = [];
  /** Of which the endpoint could make nothing. */
  readonly unreadable: { delivery: Delivery; error: unknown }[] = [];

  trigger(runId: string, program: Program, request: Request): Trigger {
    const trigger = { runId, program, request };
    this.triggers.push(trigger);
    return trigger;
  }

  ending(kind: Ending['kind'], runId: string, request: Request, createdAtMs?: Millis): Request {
    this.endings.push({ kind, runId, createdAtMs, request });
    return request;
  }

  wait({ runId, createdAtMs, stepId, eventId }: Omit<WaitNote, 'request'>, request: Request): Request {
    this.waits.push({ runId, createdAtMs, stepId, eventId, request });
    return request;
  }

  notify(eventId: string, run: RunName | undefined, request: Request): Notification {
    const event = `event ${this.notifications.length + 1}`;
    const notification: Notification = { eventId, run, event, request };
    this.notifications.push(notification);
    return notification;
  }

  revive(how: Revival['how'], dlqId: string, request: Request): Revival {
    const revival = { how, dlqId, request };
    this.revivals.push(revival);
    return revival;
  }

  resumeParked(request: Request): Request {
    this.resumes.push(request);
    return request;
  }

  keep(entry: KeptEntry): void {
    this.kept.push(entry);
  }

  tellFailure(delivery: Delivery): void {
    this.failuresTold.push(delivery);
  }

  noteFetched(delivery: Delivery, entries: DeliveredEntry[]): void {
    this.fetched.push({ delivery, entries });
  }

  missFetched(delivery: Delivery): void {
    this.missing.push(delivery);
  }

  noteUnreadable(delivery: Delivery, error: unknown): void {
    this.unreadable.push({ delivery, error });
  }
}
