/** Decides the outcome of each message that a call still has when its request ends (contract K 5). Pure. */
import { Buffer } from 'node:buffer';
import { isSuccess } from '../../protocol/responses.ts';
import { claimIn, END_STEP_BYTES_MAX, endStepBytesOf, endTokenOf } from '../../protocol/workflow/checkpoints.ts';
import { type EntryPlace, placeOf, stepIn } from '../../workflow/steps.ts';
import type { Claimed, Outcome } from '../model.ts';

/** The content of a response that ends its run. */
export interface Returned {
  response: Uint8Array;
  /** The last step before the end, if no checkpoint has saved it. */
  lastStep?: LastStep;
}

export interface LastStep {
  body: Uint8Array;
  place: EntryPlace;
}

export interface CallEnd {
  claimed: Claimed;
  outcome: Outcome;
  /** Present for the message with which the run ends. */
  returned?: Returned;
}

type Answered = Extract<Outcome, { kind: 'answered' }>;

/** An unknown outcome: the message is released, uncounted. */
const NOTHING: Outcome = { kind: 'interrupted' };

/** `first` is the message that the call delivered. */
export function endsOf(held: readonly Claimed[], first: Claimed, outcome: Outcome): CallEnd[] {
  if (outcome.kind === 'answered' && isSuccess(outcome.status)) {
    const endToken = endTokenOf(outcome.header);
    if (endToken !== undefined) return endsOfRun(held, endToken, outcome);
    // The endpoint has stopped without an outcome for the others: each is delivered in its own request.
    return held.map((claimed) => ({ claimed, outcome: claimed === first ? outcome : NOTHING }));
  }
  return held.map((claimed) => ({ claimed, outcome }));
}

function endsOfRun(held: readonly Claimed[], endToken: string, answer: Answered): CallEnd[] {
  const claim = claimIn(endToken);
  const last = held.find(({ message, claimToken }) => message.key === claim?.key && claimToken === claim.claimToken);
  if (!last) return failed(held, 'the answer ends the run with the token of a message that the call does not hold');
  if (answer.isCut) return failed(held, 'the result of the run is larger than an answer may be');
  const returned = returnedBy(answer);
  if (!returned) return failed(held, 'the answer ends the run, and what it calls the last step is no result of one');
  return held.map((claimed) =>
    claimed === last ? { claimed, outcome: answer, returned } : { claimed, outcome: answer },
  );
}

/** The response is invalid, which is retried like any other failure. */
function failed(held: readonly Claimed[], error: string): CallEnd[] {
  return held.map((claimed) => ({ claimed, outcome: { kind: 'unreachable', reason: 'malformed', error } }));
}

/** `undefined` when the last step in the response is malformed. */
function returnedBy({ header, body }: Answered): Returned | undefined {
  const stepBytes = endStepBytesOf(header);
  if (stepBytes === undefined) return { response: body };
  if (!(stepBytes <= Math.min(END_STEP_BYTES_MAX, body.length))) return undefined;
  const lastStep = lastStepIn(body.subarray(0, stepBytes));
  return lastStep && { response: body.subarray(stepBytes), lastStep };
}

/** Parses a step in the format of an element of `append` (contract K 3.3). */
function lastStepIn(json: Uint8Array): LastStep | undefined {
  const members = parsed(json);
  const step = members && stepIn(members);
  const place = step && placeOf(step);
  return place?.kind === 'step' ? { body: Buffer.from(JSON.stringify(members)), place } : undefined;
}

function parsed(json: Uint8Array): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(Buffer.from(json).toString());
    return value !== null && typeof value === 'object' ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}
