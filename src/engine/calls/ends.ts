/** What becomes of the messages that a call holds, once it has ended (contract K 5)? Pure. */
import { isSuccess } from '../../protocol/success.ts';
import { claimIn, endTokenOf } from '../../protocol/workflow/checkpoints.ts';
import type { Claimed, Outcome } from '../model.ts';

export interface CallEnd {
  claimed: Claimed;
  /** Of its attempt. */
  outcome: Outcome;
  /** The answer brings the result of the run, and this is the message that the run ends with. */
  endsRun?: true;
}

type Answered = Extract<Outcome, { kind: 'answered' }>;

/** What an attempt came to that nothing is known of: its message is given back, uncounted. */
const NOTHING: Outcome = { kind: 'interrupted' };

/** `first` is the message that the call delivered. */
export function endsOf(held: readonly Claimed[], first: Claimed, outcome: Outcome): CallEnd[] {
  if (outcome.kind === 'answered' && isSuccess(outcome.status)) {
    const endToken = endTokenOf(outcome.header);
    if (endToken !== undefined) return endsOfRun(held, endToken, outcome);
    // The endpoint has stopped, and never told what becomes of the others: each is delivered on its own.
    return held.map((claimed) => ({ claimed, outcome: claimed === first ? outcome : NOTHING }));
  }
  return held.map((claimed) => ({ claimed, outcome }));
}

function endsOfRun(held: readonly Claimed[], endToken: string, outcome: Answered): CallEnd[] {
  const claim = claimIn(endToken);
  const last = held.find(({ message, claimToken }) => message.key === claim?.key && claimToken === claim.claimToken);
  const refusal = refusalOf(last, outcome);
  if (refusal !== undefined) return held.map((claimed) => ({ claimed, outcome: refusal }));
  return held.map((claimed) => (claimed === last ? { claimed, outcome, endsRun: true } : { claimed, outcome }));
}

/** Why the answer is no result. It is retried like any other failure. */
function refusalOf(last: Claimed | undefined, { isCut }: Answered): Outcome | undefined {
  if (!last) return malformed('the answer ends the run with the token of a message that the call does not hold');
  return isCut ? malformed('the result of the run is larger than an answer may be') : undefined;
}

function malformed(error: string): Outcome {
  return { kind: 'unreachable', reason: 'malformed', error };
}
