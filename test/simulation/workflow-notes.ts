/** Records the requests of workflows and their clients with their results, outside of everything that can crash. */

import type { MessageId, Millis } from '../../src/engine/model.ts';
import type { StartedRun } from '../../src/engine/runs/dead/dead-run-store.ts';
import type { RequestRecord } from './workflow-client.ts';
import type { DeliveredEntry, Delivery } from './workflow-library.ts';
import type { Program } from './workflow-programs.ts';

/** A run, identified by its id and creation time. */
export interface RunName {
  runId: string;
  createdAtMs: Millis;
}

export interface Trigger {
  runId: string;
  program: Program;
  request: RequestRecord;
  /** Known from the first response. */
  messageId?: MessageId;
  createdAtMs?: Millis;
}

export interface Ending {
  kind: 'complete' | 'cancel';
  runId: string;
  /** Absent if any run with the id may be ended. */
  createdAtMs: Millis | undefined;
  request: RequestRecord;
}

export interface WaitNote extends RunName {
  stepId: number;
  eventId: string;
  request: RequestRecord;
}

export interface Notification {
  eventId: string;
  /** Absent if all waiters are notified. */
  run: RunName | undefined;
  /** The unique data of the event. */
  event: string;
  request: RequestRecord;
  /** Whether the response says that the event was saved for a later wait. */
  isSaved?: boolean;
}

/** A request to resume or restart a failed run. */
export interface Revival {
  how: 'resumeRun' | 'restartRun';
  dlqId: string;
  request: RequestRecord;
  started?: StartedRun;
}

/** An entry that the response to a checkpoint reported as saved. */
export interface SavedEntryNote {
  runId: string;
  messageId: MessageId;
  /** The step from which the call continues; `undefined` if the call ends. */
  text: string | undefined;
}

export class WorkflowNotes {
  readonly saved: SavedEntryNote[] = [];
  readonly triggers: Trigger[] = [];
  readonly endings: Ending[] = [];
  readonly waits: WaitNote[] = [];
  readonly notifications: Notification[] = [];
  readonly revivals: Revival[] = [];
  /** Requests to resume parked runs. */
  readonly resumes: RequestRecord[] = [];
  readonly failureCalls: Delivery[] = [];
  /** Fetched journals, up to the entry of the delivered message. */
  readonly fetched: { delivery: Delivery; entries: DeliveredEntry[] }[] = [];
  /** Journals up to the entry of a message that was handed to an open call. */
  readonly handed: { delivery: Delivery; entries: DeliveredEntry[] }[] = [];
  /** The number of failures after which the call continued. */
  failedWithin = 0;
  /** The number of last steps that were sent with the end of their run. */
  lastSteps = 0;
  /** Deliveries whose entry was missing in the fetched journal. */
  readonly missing: Delivery[] = [];
  /** Deliveries that the endpoint could not read. */
  readonly unreadable: { delivery: Delivery; error: unknown }[] = [];

  trigger(runId: string, program: Program, request: RequestRecord): Trigger {
    const trigger = { runId, program, request };
    this.triggers.push(trigger);
    return trigger;
  }

  ending(kind: Ending['kind'], runId: string, request: RequestRecord, createdAtMs?: Millis): RequestRecord {
    this.endings.push({ kind, runId, createdAtMs, request });
    return request;
  }

  wait({ runId, createdAtMs, stepId, eventId }: Omit<WaitNote, 'request'>, request: RequestRecord): RequestRecord {
    this.waits.push({ runId, createdAtMs, stepId, eventId, request });
    return request;
  }

  notify(eventId: string, run: RunName | undefined, request: RequestRecord): Notification {
    const event = `event ${this.notifications.length + 1}`;
    const notification: Notification = { eventId, run, event, request };
    this.notifications.push(notification);
    return notification;
  }

  revive(how: Revival['how'], dlqId: string, request: RequestRecord): Revival {
    const revival = { how, dlqId, request };
    this.revivals.push(revival);
    return revival;
  }

  resumeParked(request: RequestRecord): RequestRecord {
    this.resumes.push(request);
    return request;
  }

  noteSaved(entry: SavedEntryNote): void {
    this.saved.push(entry);
  }

  noteFailureCall(delivery: Delivery): void {
    this.failureCalls.push(delivery);
  }

  noteFetched(delivery: Delivery, entries: DeliveredEntry[]): void {
    this.fetched.push({ delivery, entries });
  }

  noteMissing(delivery: Delivery): void {
    this.missing.push(delivery);
  }

  noteUnreadable(delivery: Delivery, error: unknown): void {
    this.unreadable.push({ delivery, error });
  }
}
