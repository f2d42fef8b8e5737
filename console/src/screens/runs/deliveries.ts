/**
 * Derives the deliveries of each message of a run from its events: the attempts, and the time at which the next attempt
 * is due. Pure.
 */
import type { RunEvent } from '../../generated/interface.ts';

/** A step that calls a URL takes three messages: the app executes the step, the server sends the request, the app receives the response. */
export type Purpose = 'step' | 'request' | 'response';

export interface Attempt {
  purpose: Purpose;
  /** The number of the attempt at its message, starting from 1. */
  number: number;
  fromMs: number;
  /** Absent while the attempt runs. */
  toMs?: number;
  /** Set if the attempt failed. */
  error?: string;
  status?: number;
  response?: string;
}

export interface Delivery {
  messageId: string;
  purpose: Purpose;
  createdMs: number;
  /** The earliest time of the first attempt. */
  dueMs: number;
  attempts: Attempt[];
  /** No further attempt follows. */
  isOver: boolean;
}

/** The deliveries of a run by message id, and the deliveries of its steps by step id. */
export interface Deliveries {
  byId: Map<string, Delivery>;
  /** For parallel steps: the message that executes the step. */
  planOf: Map<number, Delivery>;
  /** For steps with a result: the message that continues the run with the result. */
  resultOf: Map<number, Delivery>;
  /** For call steps: the request, then the delivery of the response to the run. */
  callsOf: Map<number, Delivery[]>;
}

/** Expects `events` newest first, in the order of the API. */
export function deliveriesOf(events: readonly RunEvent[]): Deliveries {
  const all: Deliveries = { byId: new Map(), planOf: new Map(), resultOf: new Map(), callsOf: new Map() };
  for (const event of events.toReversed()) {
    const { stepInfo } = event;
    if (stepInfo === undefined) continue;
    const known = all.byId.get(stepInfo.messageId);
    if (known) follow(known, event);
    else add(event, stepInfo, all);
  }
  return all;
}

function add(event: RunEvent, info: NonNullable<RunEvent['stepInfo']>, all: Deliveries): void {
  const { messageId, stepId, callType, targetStep } = info;
  const dueMs = event.state === 'CREATED' ? (event.nextDeliveryTime ?? event.time) : event.time;
  const purpose = callType === 'toCallback' ? 'request' : callType === 'fromCallback' ? 'response' : 'step';
  const delivery: Delivery = { messageId, purpose, createdMs: event.time, dueMs, attempts: [], isOver: false };
  all.byId.set(messageId, delivery);
  follow(delivery, event);
  if (stepId === undefined) return;
  if (callType === 'toCallback' || callType === 'fromCallback') {
    all.callsOf.set(stepId, [...(all.callsOf.get(stepId) ?? []), delivery]);
  } else if (callType === 'step') {
    (targetStep === undefined ? all.resultOf : all.planOf).set(stepId, delivery);
  }
}

function follow(delivery: Delivery, event: RunEvent): void {
  const open = delivery.attempts.findLast(({ toMs }) => toMs === undefined);
  switch (event.state) {
    case 'ACTIVE':
      delivery.attempts.push({ purpose: delivery.purpose, number: delivery.attempts.length + 1, fromMs: event.time });
      break;
    case 'ERROR':
    case 'STEP_PARKED':
      if (open) Object.assign(open, { toMs: event.time, ...errorMembersOf(event) });
      break;
    case 'DELIVERED':
    case 'FAILED':
    case 'CANCELED':
      delivery.isOver = true;
      if (open) open.toMs = event.time;
      break;
    default:
  }
}

function errorMembersOf({ error, responseStatus, responseBody }: RunEvent): Partial<Attempt> {
  return {
    error: error ?? 'failed',
    ...(responseStatus !== undefined && { status: responseStatus }),
    ...(responseBody !== undefined && { response: responseBody }),
  };
}
