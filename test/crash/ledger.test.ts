import { describe, expect, it } from 'vitest';
import { type FinalView, Ledger } from './ledger.ts';

const nothing: FinalView = { dead: new Set(), endings: new Map(), attempts: new Map() };
const ended = (...states: string[]): FinalView => ({ ...nothing, endings: new Map([['msg_1', states]]) });
const arrival = { tag: 'a', messageId: 'msg_1', retried: 0, incarnation: 0, status: 200 };

function published(tag = 'a', messageId = 'msg_1'): Ledger {
  const ledger = new Ledger();
  ledger.attempted(tag);
  ledger.acked(tag, messageId);
  return ledger;
}

describe('the ledger', () => {
  it('finds nothing wrong with a message that was acknowledged and delivered', () => {
    const ledger = published();
    ledger.arrived(arrival);
    expect(ledger.judge(ended('DELIVERED'))).toEqual({
      acked: 1,
      unknown: 0,
      delivered: 1,
      lost: [],
      unexpected: [],
      unexplained: [],
      notEndedOnce: [],
      repeatedAfterCrash: 0,
    });
  });

  it('wants exactly one ending of each acknowledged message in the logs', () => {
    expect(published().judge(nothing).notEndedOnce).toEqual(['msg_1: no ending']);
    expect(published().judge(ended('FAILED')).notEndedOnce).toEqual([]);
    expect(published().judge(ended('DELIVERED', 'DELIVERED')).notEndedOnce).toHaveLength(1);
  });

  it('calls an acknowledged message lost when it was not delivered and the server does not account for it', () => {
    expect(published().judge(nothing).lost).toEqual(['msg_1']);
  });

  it('does not take an arrival that the endpoint refused for a delivery', () => {
    const ledger = published();
    ledger.arrived({ ...arrival, status: 500 });
    expect(ledger.judge(nothing).lost).toEqual(['msg_1']);
  });

  it('accepts that a message is in the DLQ', () => {
    expect(published().judge({ ...nothing, dead: new Set(['msg_1']) }).lost).toEqual([]);
  });

  it('accepts that a message was cancelled only when somebody asked for it', () => {
    const canceled = ended('CANCELED');
    const ledger = published();
    expect(ledger.judge(canceled).lost).toEqual(['msg_1']);
    ledger.cancelAsked('msg_1');
    expect(ledger.judge(canceled).lost).toEqual([]);
    expect(ledger.judge(nothing).lost).toEqual(['msg_1']);
  });

  it('follows a message through a retry from the DLQ', () => {
    const ledger = published();
    ledger.takenFromDlq('msg_1', 'a');
    ledger.acked('a', 'msg_2');
    expect(ledger.judge(nothing).lost).toEqual(['msg_2']);
    ledger.arrived({ ...arrival, messageId: 'msg_2' });
    expect(ledger.judge(nothing)).toMatchObject({ lost: [], unexpected: [] });
  });

  it('calls an arrival unexpected that nobody published, or that came under an id nobody was given', () => {
    const ledger = published();
    ledger.arrived({ ...arrival, tag: 'stranger' });
    ledger.arrived({ ...arrival, messageId: 'msg_9' });
    expect(ledger.judge(nothing).unexpected).toHaveLength(2);
  });

  it('lets a publish without an answer go either way, but makes no more than one message of it', () => {
    const ledger = new Ledger();
    ledger.attempted('a');
    ledger.unknown('a');
    expect(ledger.judge(nothing)).toMatchObject({ lost: [], unexpected: [], unknown: 1 });
    ledger.arrived(arrival);
    expect(ledger.judge(nothing).unexpected).toEqual([]);
    ledger.arrived({ ...arrival, messageId: 'msg_2' });
    expect(ledger.judge(nothing).unexpected).toHaveLength(1);
  });

  it('explains the repetition of an attempt by a crash between, and by nothing else', () => {
    const ledger = published();
    ledger.arrived({ ...arrival, incarnation: 0 });
    ledger.arrived({ ...arrival, incarnation: 1 });
    expect(ledger.judge(nothing)).toMatchObject({ unexplained: [], repeatedAfterCrash: 1 });
    ledger.arrived({ ...arrival, incarnation: 1 });
    expect(ledger.judge(nothing).unexplained).toHaveLength(1);
  });

  it('tells a retry from a repetition', () => {
    const ledger = published();
    ledger.arrived({ ...arrival, status: 500 });
    ledger.arrived({ ...arrival, retried: 1 });
    expect(ledger.judge(nothing)).toMatchObject({ unexplained: [], repeatedAfterCrash: 0 });
  });
});
