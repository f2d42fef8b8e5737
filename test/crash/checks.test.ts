import { describe, expect, it } from 'vitest';
import { check, type FinalView } from './checks.ts';
import { inWords } from './findings.ts';
import { type CallbackKind, Ledger, type Telling } from './ledger.ts';

const nothing: FinalView = { dead: new Set(), endings: new Map(), attempts: new Map() };
const ended = (...states: string[]): FinalView => ({ ...nothing, endings: new Map([['msg_1', states]]) });
const SOUND = { broken: { 'P1 lost': [], 'P2 unexpected': [] } };
const arrival = { tag: 'a', messageId: 'msg_1', retried: 0, incarnation: 0, status: 200 };

function published(tag = 'a', messageId = 'msg_1'): Ledger {
  const ledger = new Ledger();
  ledger.attempted(tag);
  ledger.acked(tag, messageId);
  return ledger;
}

describe('the checks of messages', () => {
  it('finds nothing wrong with a message that was acknowledged and delivered', () => {
    const ledger = published();
    ledger.arrived(arrival);
    const { broken, ...counts } = check(ledger, ended('DELIVERED'));
    expect(inWords(broken)).toEqual([]);
    expect(counts).toMatchObject({ acked: 1, unknown: 0, delivered: 1, repeatedAfterCrash: 0 });
  });

  it('requires exactly one final state of each acknowledged message in the logs', () => {
    expect(check(published(), nothing).broken['P2 not ended once']).toEqual(['msg_1: no ending']);
    expect(check(published(), ended('FAILED')).broken['P2 not ended once']).toEqual([]);
    expect(check(published(), ended('DELIVERED', 'DELIVERED')).broken['P2 not ended once']).toHaveLength(1);
  });

  it('reports an acknowledged message as lost if it was not delivered and the server has no record of it', () => {
    expect(check(published(), nothing).broken['P1 lost']).toEqual(['msg_1']);
  });

  it('does not count a rejected arrival as a delivery', () => {
    const ledger = published();
    ledger.arrived({ ...arrival, status: 500 });
    expect(check(ledger, nothing).broken['P1 lost']).toEqual(['msg_1']);
  });

  it('accepts that a message is in the DLQ', () => {
    expect(check(published(), { ...nothing, dead: new Set(['msg_1']) }).broken['P1 lost']).toEqual([]);
  });

  it('accepts a cancelled message only if a client cancelled it', () => {
    const canceled = ended('CANCELED');
    const ledger = published();
    expect(check(ledger, canceled).broken['P1 lost']).toEqual(['msg_1']);
    ledger.cancelAsked('msg_1');
    expect(check(ledger, canceled).broken['P1 lost']).toEqual([]);
    expect(check(ledger, nothing).broken['P1 lost']).toEqual(['msg_1']);
  });

  it('follows a message through a retry from the DLQ', () => {
    const ledger = published();
    ledger.takenFromDlq('msg_1', 'a');
    ledger.acked('a', 'msg_2');
    expect(check(ledger, nothing).broken['P1 lost']).toEqual(['msg_2']);
    ledger.arrived({ ...arrival, messageId: 'msg_2' });
    expect(check(ledger, nothing)).toMatchObject(SOUND);
  });

  it('reports an arrival as unexpected if it was not published, or has an id that no client received', () => {
    const ledger = published();
    ledger.arrived({ ...arrival, tag: 'stranger' });
    ledger.arrived({ ...arrival, messageId: 'msg_9' });
    expect(check(ledger, nothing).broken['P2 unexpected']).toHaveLength(2);
  });

  it('allows a publish without a response to create no message or one, but not two', () => {
    const ledger = new Ledger();
    ledger.attempted('a');
    ledger.unknown('a');
    expect(check(ledger, nothing)).toMatchObject({ ...SOUND, unknown: 1 });
    ledger.arrived(arrival);
    expect(check(ledger, nothing).broken['P2 unexpected']).toEqual([]);
    ledger.arrived({ ...arrival, messageId: 'msg_2' });
    expect(check(ledger, nothing).broken['P2 unexpected']).toHaveLength(1);
  });

  it('allows a repeated attempt only with a crash in between', () => {
    const ledger = published();
    ledger.arrived({ ...arrival, incarnation: 0 });
    ledger.arrived({ ...arrival, incarnation: 1 });
    expect(check(ledger, nothing)).toMatchObject({
      broken: { 'P7 repeated without a crash': [] },
      repeatedAfterCrash: 1,
    });
    ledger.arrived({ ...arrival, incarnation: 1 });
    expect(check(ledger, nothing).broken['P7 repeated without a crash']).toHaveLength(1);
  });

  it('distinguishes a retry from a repetition', () => {
    const ledger = published();
    ledger.arrived({ ...arrival, status: 500 });
    ledger.arrived({ ...arrival, retried: 1 });
    expect(check(ledger, nothing)).toMatchObject({
      broken: { 'P7 repeated without a crash': [] },
      repeatedAfterCrash: 0,
    });
  });
});

const telling: Telling = {
  kind: 'callback',
  sourceId: 'msg_1',
  sourceRetried: 0,
  messageId: 'msg_2',
  retried: 0,
  incarnation: 0,
  status: 200,
};

function asked(...kinds: CallbackKind[]): Ledger {
  const ledger = published();
  ledger.callbacksAsked('a', kinds);
  return ledger;
}

/** The logs of the source message: its number of attempts and its final state. */
function view(attempts: number, ending: string, ...dead: string[]): FinalView {
  return {
    dead: new Set(dead),
    endings: new Map([['msg_1', [ending]]]),
    attempts: new Map([['msg_1', attempts]]),
  };
}

describe('the checks of callbacks', () => {
  it('finds nothing wrong with a delivery whose callback arrived', () => {
    const ledger = asked('callback', 'failureCallback');
    ledger.told(telling);
    const { broken, ...counts } = check(ledger, view(1, 'DELIVERED'));
    expect(inWords({ ...broken, 'P1 lost': [] })).toEqual([]);
    expect(counts).toMatchObject({ taken: 1, buried: 0, repeatedAfterCrash: 0 });
  });

  it('reports a missing callback of a recorded attempt', () => {
    const ledger = asked('callback');
    ledger.told(telling);
    expect(check(ledger, view(3, 'DELIVERED')).broken['P3 nobody was told of']).toEqual([
      'callback of msg_1 retried 1',
      'callback of msg_1 retried 2',
    ]);
  });

  it('reports a missing failure callback only for a dead message', () => {
    const ledger = asked('failureCallback');
    expect(check(ledger, view(2, 'FAILED')).broken['P3 nobody was told of']).toEqual([
      'failureCallback of msg_1 retried 1',
    ]);
    expect(check(ledger, view(2, 'DELIVERED')).broken['P3 nobody was told of']).toEqual([]);
    ledger.told({ ...telling, kind: 'failureCallback', sourceRetried: 1 });
    expect(check(ledger, view(2, 'FAILED'))).toMatchObject({
      broken: { 'P3 nobody was told of': [], 'P3 told of what is not logged': [] },
    });
  });

  it('distinguishes two callbacks of one attempt from a repeated callback', () => {
    const ledger = asked('callback');
    ledger.told({ ...telling, incarnation: 0 });
    ledger.told({ ...telling, incarnation: 1 });
    expect(check(ledger, view(1, 'DELIVERED'))).toMatchObject({
      broken: { 'P3 told twice of': [], 'P7 repeated without a crash': [] },
    });
    ledger.told({ ...telling, messageId: 'msg_3' });
    expect(check(ledger, view(1, 'DELIVERED')).broken['P3 told twice of']).toHaveLength(1);
  });

  it('reports a callback for an attempt that is not logged, or that was not requested', () => {
    const ledger = asked('callback');
    ledger.told({ ...telling, sourceRetried: 1 });
    ledger.told({ ...telling, kind: 'failureCallback' });
    expect(check(ledger, view(1, 'DELIVERED')).broken['P3 told of what is not logged']).toHaveLength(2);
  });

  it('allows a callback that is always rejected to end only in the DLQ', () => {
    const ledger = asked('callback');
    ledger.told({ ...telling, status: 500 });
    expect(check(ledger, view(1, 'DELIVERED', 'msg_2'))).toMatchObject({
      buried: 1,
      broken: { 'P2 callback lost': [] },
    });
    expect(check(ledger, view(1, 'DELIVERED'))).toMatchObject({ buried: 0, broken: { 'P2 callback lost': ['msg_2'] } });
  });
});
