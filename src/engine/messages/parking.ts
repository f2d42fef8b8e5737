/** Parking: when a message of a run is parked, for how long, and with which explanation (contract K 7). Pure. */
import { reportsCodeChange, takesCheckpoints } from '../../protocol/workflow/checkpoints.ts';
import type { Claimed, Millis, Outcome } from '../model.ts';

/**
 * The shortest and the longest time of parking. A minute is short compared with a deployment; an hour limits the cost of
 * a run that nobody fixes.
 */
const PARKED_FOR_MS = { first: 60_000, max: 3_600_000 };

/** The maximum length of the explanation, and of a body from which the explanation is parsed. */
const SENTENCE_LENGTH_MAX = 1_000;
const PAYLOAD_BYTES_MAX = 64 * 1024;

type ResponseOutcome = Extract<Outcome, { kind: 'responded' }>;

/** Whether the endpoint reports that the code of the workflow no longer fits the journal of the run. */
export function isCodeChanged({ message }: Claimed, { status, header }: ResponseOutcome): boolean {
  const { run } = message.settings;
  return run !== undefined && takesCheckpoints(run) && status === 409 && reportsCodeChange(header);
}

/** How long a message is parked for the `parkings`-th time in a row. */
export function parkedForMs(parkings: number): Millis {
  return Math.min(PARKED_FOR_MS.first * 2 ** (parkings - 1), PARKED_FOR_MS.max);
}

/** The explanation in the response: the `message` of its error (contract W 10). */
export function explanationIn(body: Uint8Array): string {
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
