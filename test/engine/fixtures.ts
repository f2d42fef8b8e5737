/** Messages and claims for the engine's tests, valid by default. */
import type { Claimed, Message, Outcome } from '../../src/engine/model.ts';
import type { HeaderMap } from '../../src/protocol/options/settings.ts';

/** A round time to count from: 2026-01-01T00:00:00Z. */
export const NOW_MS = Date.UTC(2026, 0, 1);

export function message(changes: Partial<Message> = {}): Message {
  return {
    key: 1,
    id: `msg_${changes.key ?? 1}`,
    projectId: 1,
    url: 'https://a.example/hook',
    origin: 'https://a.example',
    method: 'POST',
    header: {},
    body: new Uint8Array(),
    createdAtMs: NOW_MS,
    notBeforeMs: NOW_MS,
    ...changes,
    settings: { dialect: 'upstash', maxRetries: 3, ...changes.settings },
  };
}

export function claimed(changes: Partial<Claimed> = {}): Claimed {
  return { message: message(), retried: 0, claimToken: 7, claimedAtMs: NOW_MS, ...changes };
}

export function answered(status: number, header: HeaderMap = {}): Outcome {
  return { kind: 'responded', status, header, body: new Uint8Array() };
}
