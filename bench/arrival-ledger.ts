/**
 * Records which messages arrived, how often and when, for a receiver process with an IPC channel. The parent's side of
 * the channel is `receiver-process.ts`. Times are from CLOCK_MONOTONIC, which all processes of a machine share.
 */
import type { ReceiverCommand, ReceiverEvent } from './receiver-process.ts';

let expected = 0;
let distinct = 0;
let repeated = 0;
let unexpected = 0;
let lastArrivalNs = 0n;
let arrivals = new BigUint64Array(0);

export function arrived(messageNumber: number): void {
  if (!(messageNumber < expected)) {
    unexpected += 1;
    return;
  }
  if (arrivals[messageNumber] !== 0n) {
    repeated += 1;
    return;
  }
  lastArrivalNs = process.hrtime.bigint();
  arrivals[messageNumber] = lastArrivalNs;
  distinct += 1;
  if (distinct === expected) send({ kind: 'complete' });
}

/** Sends `event` to the parent and then handles the parent's commands. The process exits when the parent disconnects. */
export function serveLedger(event: ReceiverEvent): void {
  process.on('message', handle);
  process.once('disconnect', () => process.exit(0));
  send(event);
}

function handle(command: ReceiverCommand): void {
  switch (command.kind) {
    case 'expect':
      expected = command.messages;
      distinct = repeated = unexpected = 0;
      lastArrivalNs = 0n;
      arrivals = new BigUint64Array(expected);
      send({ kind: 'ready' });
      if (expected === 0) send({ kind: 'complete' });
      return;
    case 'report':
      send({ kind: 'report', distinct, repeated, unexpected, lastArrivalNs, arrivalsNs: arrivals });
  }
}

function send(event: ReceiverEvent): void {
  process.send?.(event);
}
