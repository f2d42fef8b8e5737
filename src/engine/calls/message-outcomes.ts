/** Decides the outcome of each message that a call still has when its request ends (contract K 5). Pure. */
import { Buffer } from 'node:buffer';
import { isSuccess } from '../../protocol/responses.ts';
import {
  decodeCheckpointClaim,
  END_STEP_BYTES_MAX,
  endStepBytesOf,
  endTokenOf,
} from '../../protocol/workflow/checkpoints.ts';
import { type EntryIdentity, identityOfStep, stepOfMembers } from '../../workflow/steps.ts';
import type { Claimed, Outcome } from '../model.ts';

/** The content of a response that ends its run. */
export interface RunResponse {
  response: Uint8Array;
  /** The last step before the end, unless a checkpoint has saved this step. */
  lastStep?: LastStep;
}

export interface LastStep {
  body: Uint8Array;
  identity: EntryIdentity;
}

export interface MessageOutcome {
  claimed: Claimed;
  outcome: Outcome;
  /** Present for the message with which the run ends. */
  returned?: RunResponse;
}

type ResponseOutcome = Extract<Outcome, { kind: 'responded' }>;

/** The outcome of a message whose real outcome is unknown: the message is released, uncounted. */
const INTERRUPTED: Outcome = { kind: 'interrupted' };

/** Returns the outcome of each message in `messages`. `first`: the message that the call delivered. */
export function messageOutcomes(messages: readonly Claimed[], first: Claimed, outcome: Outcome): MessageOutcome[] {
  if (outcome.kind === 'responded' && isSuccess(outcome.status)) {
    const endToken = endTokenOf(outcome.header);
    if (endToken !== undefined) return outcomesOfRunEnd(messages, endToken, outcome);
    // The endpoint returned no outcome for the other messages: each of them is delivered in its own request.
    return messages.map((claimed) => ({ claimed, outcome: claimed === first ? outcome : INTERRUPTED }));
  }
  return messages.map((claimed) => ({ claimed, outcome }));
}

function outcomesOfRunEnd(messages: readonly Claimed[], endToken: string, response: ResponseOutcome): MessageOutcome[] {
  const claim = decodeCheckpointClaim(endToken);
  const endClaim = messages.find(
    ({ message, claimToken }) => message.key === claim?.key && claimToken === claim.claimToken,
  );
  if (!endClaim)
    return allMalformed(messages, 'the response ends the run with the token of a message that is not of this call');
  if (response.isCut) return allMalformed(messages, 'the result of the run is larger than a response may be');
  const returned = parseRunResponse(response);
  if (!returned)
    return allMalformed(messages, 'the response ends the run, but the last step in it is not the result of a step');
  return messages.map((claimed) =>
    claimed === endClaim ? { claimed, outcome: response, returned } : { claimed, outcome: response },
  );
}

/** The outcomes after an invalid response, which is retried like any other failure. */
function allMalformed(messages: readonly Claimed[], error: string): MessageOutcome[] {
  return messages.map((claimed) => ({ claimed, outcome: { kind: 'unreachable', reason: 'malformed', error } }));
}

/** Reads the content of a response that ends its run. Returns undefined if the last step in the response is malformed. */
function parseRunResponse({ header, body }: ResponseOutcome): RunResponse | undefined {
  const stepBytes = endStepBytesOf(header);
  if (stepBytes === undefined) return { response: body };
  if (!(stepBytes <= Math.min(END_STEP_BYTES_MAX, body.length))) return undefined;
  const lastStep = parseLastStep(body.subarray(0, stepBytes));
  return lastStep && { response: body.subarray(stepBytes), lastStep };
}

/** Parses a step in the format of an element of `append` (contract K 3.3). */
function parseLastStep(json: Uint8Array): LastStep | undefined {
  const members = parseObject(json);
  const step = members && stepOfMembers(members);
  const identity = step && identityOfStep(step);
  return identity?.kind === 'step' ? { body: Buffer.from(JSON.stringify(members)), identity } : undefined;
}

function parseObject(json: Uint8Array): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(Buffer.from(json).toString());
    return value !== null && typeof value === 'object' ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}
