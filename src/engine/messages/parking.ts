/** When is a message of a run parked, for how long, and what is said of it (contract K 7)? Pure. */
import { saysCodeChanged, takesCheckpoints } from '../../protocol/workflow/checkpoints.ts';
import type { Claimed, Millis, Outcome } from '../model.ts';

/** A minute is short beside a deployment; an hour bounds what a run costs that nobody takes care of. */
const PARKED_FOR_MS = { first: 60_000, max: 3_600_000 };

/** So much of a sentence is kept, and so much of a body is read for it. */
const SENTENCE_LENGTH_MAX = 1_000;
const PAYLOAD_BYTES_MAX = 64 * 1024;

type Answered = Extract<Outcome, { kind: 'answered' }>;

/** Whether the endpoint says that the code of the workflow no longer fits the journal of the run. */
export function isCodeChanged({ message }: Claimed, { status, header }: Answered): boolean {
  const { run } = message.settings;
  return run !== undefined && takesCheckpoints(run) && status === 409 && saysCodeChanged(header);
}

/** How long a message is parked for the `parkings`-th time in a row. */
export function parkedForMs(parkings: number): Millis {
  return Math.min(PARKED_FOR_MS.first * 2 ** (parkings - 1), PARKED_FOR_MS.max);
}

/** What the answer says of the change: the `message` of its error (contract W 10). */
export function sentenceOf(body: Uint8Array): string {
  const sentence = body.length > PAYLOAD_BYTES_MAX ? undefined : messageIn(new TextDecoder().decode(body));
  return sentence?.slice(0, SENTENCE_LENGTH_MAX) ?? 'The code of the workflow has changed.';
}

function messageIn(text: string): string | undefined {
  try {
    const { message } = JSON.parse(text) as { message?: unknown };
    return typeof message === 'string' && message !== '' ? message : undefined;
  } catch {
    return undefined; // no JSON, or null
  }
}
