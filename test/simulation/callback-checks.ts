/**
 * Checks P3 (docs/architecture.md): each recorded attempt has exactly one callback, each dead message has one failure
 * callback, and there are no other callbacks.
 */
import type { Message, MessageId } from '../../src/engine/model.ts';
import type { DeadMessage } from '../../src/engine/stores.ts';
import type { History } from './histories.ts';
import { isCallback } from './ledger.ts';
import type { World } from './world.ts';

interface Payload {
  sourceMessageId: MessageId;
  retried: number;
  status: number;
  /** Present only in failure callbacks. */
  dlqId?: string;
}

/** A callback that must exist. */
interface ExpectedCallback {
  kind: 'callback' | 'failureCallback';
  retried: number;
  isDelivered: boolean;
}

interface Callback {
  message: Message;
  payload: Payload;
}

export function checkCallbacks(world: World, dead: DeadMessage[], histories: Map<MessageId, History>): void {
  const callbacks: Callback[] = [];
  for (const { message } of histories.values()) {
    if (isCallback(message.body)) callbacks.push({ message, payload: payloadOf(message) });
  }
  const callbacksByName = Map.groupBy(callbacks, ({ payload }) =>
    nameOf(payload.sourceMessageId, payload.dlqId === undefined ? 'callback' : 'failureCallback', payload.retried),
  );
  for (const { message: source, letters } of histories.values()) {
    for (const expected of expectedCallbacksOf(source, letters)) {
      const name = nameOf(source.id, expected.kind, expected.retried);
      checkCallback(world, source, expected, callbacksByName.get(name) ?? []);
      callbacksByName.delete(name);
    }
  }
  for (const [stray] of callbacksByName.values()) {
    if (stray) world.violate('P3', 'a callback tells of an attempt that is not recorded', stray.message.id);
  }
  checkDlqIds(world, dead, callbacks);
}

/**
 * The callbacks that must exist according to the log of a message. A failure that is followed by a cancel has no
 * callback.
 */
function expectedCallbacksOf({ settings }: Message, letters: string): ExpectedCallback[] {
  const expected: ExpectedCallback[] = [];
  let retried = 0;
  for (const [at, letter] of [...letters].entries()) {
    const isDelivered = letter === 'D';
    const isToldFailure = letter === 'E' && letters[at + 1] !== 'X';
    if (settings.callback && (isDelivered || isToldFailure)) expected.push({ kind: 'callback', retried, isDelivered });
    if (settings.failureCallback && letter === 'F') {
      expected.push({ kind: 'failureCallback', retried, isDelivered: false });
    }
    if (letter === 'R') retried += 1;
  }
  return expected;
}

function checkCallback(
  world: World,
  source: Message,
  { kind, isDelivered }: ExpectedCallback,
  callbacks: Callback[],
): void {
  const [first] = callbacks.toSorted((a, b) => a.message.key - b.message.key);
  if (!first) return world.violate('P3', `an attempt is recorded without its ${kind}`, source.id);
  const { message, payload } = first;
  const status = payload.status >= 200 && payload.status <= 299;
  if (status !== isDelivered) world.violate('P3', `a ${kind} tells of status ${payload.status}`, message.id);
  if (message.url !== source.settings[kind]?.url) world.violate('P3', `a ${kind} goes to ${message.url}`, message.id);
  const revivals = revivalsOf(world, callbacks);
  if (callbacks.length > 1 + revivals) {
    world.violate('P3', `${callbacks.length} times the same ${kind}, of which ${revivals} from the DLQ`, message.id);
  }
}

/**
 * The number of times that clients may have retried one of `callbacks` from the DLQ. Each retry creates another callback.
 */
function revivalsOf({ ledger }: World, callbacks: Callback[]): number {
  const keys = new Set(callbacks.map(({ message }) => String(message.key)));
  const retries = ledger.deadCalls.filter(
    ({ action, result, missing }) => action === 'retry' && !missing && (result === 'acked' || result === 'unknown'),
  );
  return retries.flatMap(({ dlqIds }) => dlqIds).filter((dlqId) => keys.has(dlqId.split('-')[1] ?? '')).length;
}

/** A failure callback names an existing DLQ entry, unless a client has retried or deleted the entry. */
function checkDlqIds(world: World, dead: DeadMessage[], callbacks: Callback[]): void {
  const known = new Set([...dead.map(({ dlqId }) => dlqId), ...world.ledger.deadCalls.flatMap(({ dlqIds }) => dlqIds)]);
  for (const { message, payload } of callbacks) {
    if (payload.dlqId === undefined || known.has(payload.dlqId)) continue;
    world.violate('P3', `a failure callback names ${payload.dlqId}, which is not in the DLQ`, message.id);
  }
}

function payloadOf({ body }: Message): Payload {
  return JSON.parse(new TextDecoder().decode(body)) as Payload;
}

function nameOf(sourceId: MessageId, kind: ExpectedCallback['kind'], retried: number): string {
  return `${sourceId} ${kind} ${retried}`;
}
