/** When the dispatcher polls the store, which messages it starts first, and how it behaves while the store refuses. */
import { describe, expect, test } from 'vitest';
import { type BacklogKey, backlogKey } from '../../src/engine/lanes/backlog-key.ts';
import { StoreUnavailable } from '../../src/engine/store-errors.ts';
import type { Handoff } from '../../src/engine/stores.ts';
import { bench, setReply, to } from './dispatcher-bench.ts';
import { message, NOW_MS } from './fixtures.ts';

describe('when it polls the store', () => {
  test('once at the start, and then not before something is due', async () => {
    const { clock, store, dispatcher, sent } = bench();
    store.add(to('a', 1, { notBeforeMs: NOW_MS + 600_000 }));
    dispatcher.wake();
    await clock.advanceBy(599_999);
    expect(store.claims.length).toBe(1);
    await clock.advanceBy(1);
    expect(sent()).toEqual([1]);
    expect(store.claims.length).toBe(2);
  });

  test('never again while there are no messages at all', async () => {
    const { clock, store, dispatcher } = bench();
    dispatcher.wake();
    await clock.advanceBy(86_400_000);
    expect(store.claims.length).toBe(1);
    expect(clock.nextTimerAtMs).toBeUndefined();
  });

  test('earlier, when a message is saved that is due earlier', async () => {
    const { clock, store, dispatcher, sent } = bench();
    store.add(to('a', 1, { notBeforeMs: NOW_MS + 600_000 }));
    dispatcher.wake();
    await clock.advanceBy(1_000);
    store.add(to('a', 2, { notBeforeMs: NOW_MS + 5_000 }));
    dispatcher.noteDue(NOW_MS + 5_000);
    await clock.advanceTo(4_999);
    expect(sent()).toEqual([]);
    await clock.advanceTo(5_000);
    expect(sent()).toEqual([2]);
    await clock.advanceTo(600_000);
    expect(sent()).toEqual([2, 1]);
  });

  test('again at once, when a message became due during the poll', async () => {
    const { clock, store, dispatcher, sent } = bench();
    store.beforeWrite = () => clock.delay(5);
    dispatcher.wake();
    await clock.advanceBy(9);
    dispatcher.noteDue(NOW_MS);
    await clock.advanceBy(1);
    store.add(to('a', 1)); // too late for the current claim
    await clock.advanceBy(20);
    expect(sent()).toEqual([1]);
  });

  test('again at once, when a message entered a backlog while that was being emptied', async () => {
    const { clock, store, dispatcher, sent } = bench({ waitingBacklogs: ['1 https://a.example'] });
    store.beforeWrite = () => clock.delay(5);
    dispatcher.wake();
    await clock.advanceBy(9);
    dispatcher.noteWaitingBacklog('1 https://a.example');
    await clock.advanceBy(1);
    store.add(to('a', 1), { isInBacklog: true }); // too late for the current claim
    await clock.advanceBy(20);
    expect(sent()).toEqual([1]);
  });

  test('within half a minute after the wall clock was set forward', async () => {
    const { clock, store, dispatcher, sent } = bench();
    store.add(to('a', 1, { notBeforeMs: NOW_MS + 3_600_000 }));
    dispatcher.wake();
    await clock.advanceBy(1_000);
    clock.jumpBy(3_600_000);
    await clock.advanceBy(30_000);
    expect(sent()).toEqual([1]);
  });

  test('when the planned time has passed, though the wall clock was set back', async () => {
    const { clock, store, dispatcher, sent } = bench();
    store.add(to('a', 1, { notBeforeMs: NOW_MS + 60_000 }));
    dispatcher.wake();
    await clock.advanceBy(1_000);
    clock.jumpBy(-3_600_000);
    await clock.advanceBy(58_999);
    expect(sent()).toEqual([]);
    await clock.advanceBy(1);
    expect(sent()).toEqual([1]);
  });

  test('not while it is full, and for no more than its capacity', async () => {
    const { clock, store, network, dispatcher } = bench({ settings: { inFlightMax: 4, inFlightPerOriginMax: 2 } });
    for (const letter of ['a', 'b']) setReply(network, `https://${letter}.example`, { kind: 'silence' });
    for (const [index, letter] of ['a', 'b', 'a', 'b', 'a', 'b'].entries()) store.add(to(letter, index + 1));
    dispatcher.wake();
    await clock.advanceBy(1_000);
    expect(network.attempts.length).toBe(2);
    await clock.advanceBy(5_000);
    const asked = store.claims.length;
    expect(network.attempts.length).toBe(4);
    await clock.advanceBy(60_000);
    expect(store.claims.length).toBe(asked);
  });
});

describe('P9: the limits', () => {
  test('hold also for messages that are accepted during a claim', async () => {
    const { clock, store, network, dispatcher } = bench({ settings: { inFlightMax: 6, inFlightPerOriginMax: 6 } });
    for (const letter of ['a', 'b']) setReply(network, `https://${letter}.example`, { kind: 'silence' });
    for (let key = 1; key <= 6; key += 1) store.add(to('a', key));
    store.beforeWrite = () => clock.delay(5);
    dispatcher.wake();
    await clock.advanceBy(7);
    let reserved = 0;
    while (dispatcher.tryReserve('1 https://b.example', 0, 1) === 'reserved') reserved += 1;
    await clock.advanceBy(1_000);
    expect(reserved).toBeGreaterThan(0);
    expect(network.attempts.length + reserved).toBeLessThanOrEqual(6);
  });

  test('a message enters the backlog of its origin when others already wait there', async () => {
    const { clock, store, dispatcher } = bench({ waitingBacklogs: ['1 https://a.example'] });
    store.add(to('a', 1), { isInBacklog: true });
    expect(dispatcher.tryReserve('1 https://a.example', 0, 1)).toBe('wait');
    dispatcher.wake();
    await clock.advanceBy(100);
    expect(dispatcher.tryReserve('1 https://a.example', 0, 1)).toBe('reserved');
  });

  test('a slot that was reserved without success is given to a waiting message', async () => {
    const { clock, store, dispatcher, sent } = bench({ settings: { inFlightMax: 1 } });
    expect(dispatcher.tryReserve('1 https://a.example', 0, 1)).toBe('reserved');
    store.add(to('b', 1));
    dispatcher.noteDue(NOW_MS);
    await clock.advanceBy(1_000);
    expect(sent()).toEqual([]);
    dispatcher.giveBack(1);
    await clock.advanceBy(1_000);
    expect(sent()).toEqual([1]);
  });

  test('origins that hang take nothing from one that does not', async () => {
    const { clock, store, network, dispatcher } = bench();
    for (const letter of ['a', 'b', 'c']) setReply(network, `https://${letter}.example`, { kind: 'silence' });
    for (let key = 1; key <= 60; key += 1) store.add(to('abc'.charAt(key % 3), key));
    dispatcher.wake();
    await clock.advanceBy(1_000);
    for (let key = 100; key < 120; key += 1) {
      store.add(to('d', key));
      dispatcher.noteDue(NOW_MS);
    }
    await clock.advanceBy(500);
    expect(network.attempts.filter(({ origin }) => origin === 'https://d.example').length).toBe(20);
  });

  test('backlogs are served in rotation, one slot at a time', async () => {
    const backlogs: BacklogKey[] = ['1 https://a.example', '1 https://b.example', '1 https://c.example'];
    const { clock, store, dispatcher, sent } = bench({ settings: { inFlightMax: 1 }, waitingBacklogs: backlogs });
    for (let key = 1; key <= 9; key += 1)
      store.add(to('abc'.charAt(Math.floor((key - 1) / 3)), key), { isInBacklog: true });
    dispatcher.wake();
    await clock.advanceBy(1_000);
    expect(sent()).toEqual([1, 4, 7, 2, 5, 8, 3, 6, 9]);
  });

  test('an endpoint that responds at once does not wait for the rotation of many slow ones', async () => {
    const slow = Array.from({ length: 60 }, (_, nth) => `https://slow-${nth}.example`);
    const settings = { inFlightMax: 128, inFlightPerOriginMax: 64 };
    const waitingBacklogs = [...slow, 'https://d.example'].map((origin) => backlogKey(1, origin));
    const { clock, store, network, dispatcher } = bench({ settings, waitingBacklogs });
    for (const [nth, origin] of slow.entries()) {
      setReply(network, origin, { kind: 'answer', status: 200, afterMs: 1_000 });
      for (let key = 0; key < 20; key += 1) store.add(message({ key: nth * 20 + key, origin }), { isInBacklog: true });
    }
    for (let key = 10_000; key < 10_100; key += 1) store.add(to('d', key), { isInBacklog: true });
    dispatcher.wake();
    await clock.advanceBy(4_000);
    expect(network.attempts.filter(({ origin }) => origin === 'https://d.example').length).toBe(100);
  });

  test('backlogs that are only in the store are served too, even after the store failed to list them', async () => {
    const settings = { inFlightMax: 1, backlogsMax: 1 };
    const backlogs: BacklogKey[] = ['1 https://a.example', '1 https://b.example', '1 https://c.example'];
    const { clock, store, dispatcher, sent, warnings } = bench({ settings, waitingBacklogs: backlogs });
    for (const [index, letter] of ['a', 'b', 'c'].entries()) store.add(to(letter, index + 1), { isInBacklog: true });
    const { waitingBacklogs } = store;
    store.waitingBacklogs = () => {
      store.waitingBacklogs = waitingBacklogs;
      return Promise.reject(new StoreUnavailable('gone'));
    };
    dispatcher.wake();
    await clock.advanceBy(4_000);
    expect([sent(), warnings]).toEqual([[1], ['claim_failed']]);
    await clock.advanceBy(2_000);
    expect(sent()).toEqual([1, 2, 3]);
  });

  test('newly due messages are served too, however long the backlogs are', async () => {
    const { clock, store, dispatcher, sent } = bench({
      settings: { inFlightMax: 1 },
      waitingBacklogs: ['1 https://a.example', '1 https://b.example'],
    });
    for (let key = 1; key <= 20; key += 1) store.add(to('ab'.charAt(key % 2), key), { isInBacklog: true });
    store.add(to('d', 100));
    store.add(to('d', 101));
    dispatcher.wake();
    await clock.advanceBy(60);
    expect(sent()).toContain(100);
    expect(sent()).toContain(101);
  });

  test('hands on no slot within a lane whose endpoint stopped responding and has more than its share', async () => {
    const settings = { inFlightMax: 100, inFlightPerOriginMax: 16 };
    const { clock, store, network, dispatcher } = bench({ settings });
    const offered: boolean[] = [];
    const settle = store.messages.settle.bind(store);
    store.messages.settle = (args: Parameters<typeof settle>[0] & { handoff?: Handoff }) => {
      offered.push(args.handoff !== undefined);
      return settle(args);
    };
    setReply(network, 'https://a.example', { kind: 'reset', afterMs: 10 });
    const flowControl = { key: 'k', parallelism: 16, periodS: 1 };
    const lane = { dialect: 'upstash', maxRetries: 3, flowControl } as const;
    for (let key = 1; key <= 16; key += 1) store.add(to('a', key, { settings: lane }));
    dispatcher.wake();
    await clock.advanceBy(100);
    expect(offered).toHaveLength(16);
    // As many as an endpoint may have that never responds.
    expect(offered.filter((isOffered) => isOffered).length).toBeLessThanOrEqual(4);
  });

  test('runs more claims at once while each returns many and takes long, and one when it returns few or is fast', async () => {
    const settings = { inFlightMax: 4_000, inFlightPerOriginMax: 4_000 };
    const { clock, store, dispatcher } = bench({ settings });
    let [underWay, most, takesMs] = [0, 0, 100];
    const claim = store.messages.claim.bind(store);
    store.messages.claim = async (args) => {
      underWay += 1;
      most = Math.max(most, underWay);
      await clock.delay(takesMs);
      const answer = await claim(args);
      underWay -= 1;
      return answer;
    };
    for (let key = 1; key <= 4_000; key += 1) store.add(to('abcd'.charAt(key % 4), key));
    dispatcher.wake();
    await clock.advanceBy(2_000);
    expect(most).toBe(3);
    takesMs = 15;
    await clock.advanceBy(101); // running attempts get their responses
    most = 0;
    await clock.advanceBy(1_000);
    expect(store.rows.size).toBe(0);
    expect(most).toBe(1);
    expect(Math.max(...store.claims.map(({ limit }) => limit))).toBe(64);
    store.add(to('a', 9_000));
    dispatcher.noteDue(NOW_MS);
    await clock.advanceBy(100);
    [most, takesMs] = [0, 100];
    for (let key = 9_001; key <= 9_010; key += 1) store.add(to('a', key));
    dispatcher.noteDue(NOW_MS);
    await clock.advanceBy(100);
    expect(most).toBe(1);
  });

  test('a claim takes twice as many when no other command waits for it', async () => {
    const settings = { inFlightMax: 4_000, inFlightPerOriginMax: 4_000 };
    const { clock, store, dispatcher } = bench({ settings, areClaimsSeparate: true });
    for (let key = 1; key <= 1_000; key += 1) store.add(to('abcd'.charAt(key % 4), key));
    dispatcher.wake();
    await clock.advanceBy(2_000);
    expect(store.rows.size).toBe(0);
    expect(Math.max(...store.claims.map(({ limit }) => limit))).toBe(128);
  });

  test('starts the messages of a claim with the projects that are less far behind, each in its order', async () => {
    const { clock, store, dispatcher, sent } = bench({ settings: { inFlightMax: 100 } });
    for (const [projectId, lagMs] of [
      [1, 60_000],
      [2, 10],
      [1, 5],
      [2, 0],
    ] as const) {
      const key = store.rows.size + 1;
      store.add(to('abcd'.charAt(key - 1), key, { projectId, notBeforeMs: NOW_MS - lagMs }));
    }
    dispatcher.wake();
    await clock.advanceBy(1_000);
    expect(sent()).toEqual([2, 4, 1, 3]);
  });

  test('a retry that a claim returns is as far behind as its own due time, however long ago the first attempt was', async () => {
    const { clock, store, dispatcher, sent } = bench({ settings: { inFlightMax: 100 } });
    store.add(to('a', 1, { projectId: 1, notBeforeMs: NOW_MS - 3_600_000 }), { dueAtMs: NOW_MS - 10 });
    store.add(to('b', 2, { projectId: 2, notBeforeMs: NOW_MS - 1_000 }));
    dispatcher.wake();
    await clock.advanceBy(1_000);
    expect(sent()).toEqual([1, 2]);
  });

  test('nothing more is claimed while 64 attempts are being settled, but for a quarter of a second at most', async () => {
    const settings = { inFlightMax: 4_000, inFlightPerOriginMax: 4_000 };
    const { clock, store, dispatcher } = bench({ settings });
    const { claim, settle } = store;
    for (let key = 5_001; key <= 6_200; key += 1) store.add(to('abcd'.charAt(key % 4), key));
    dispatcher.wake();
    await clock.advanceBy(5_000); // by now the endpoints have responded often
    store.claims.length = 0;
    store.claim = async (...args) => clock.delay(5).then(() => claim.apply(store, args));
    store.settle = async (...args) => clock.delay(600).then(() => settle.apply(store, args));
    for (let key = 1; key <= 3_000; key += 1) store.add(to('abcd'.charAt(key % 4), key));
    dispatcher.noteDue(NOW_MS);
    await clock.advanceBy(30);
    const claimsAtFirst = store.claims.length;
    await clock.advanceBy(200);
    expect(store.claims.length).toBe(claimsAtFirst);
    await clock.advanceBy(60);
    expect(store.claims.length).toBe(claimsAtFirst + 1);
  });

  test('messages that others have locked are claimed after a pause, or when another message is due', async () => {
    const { clock, store, dispatcher } = bench();
    const { claim } = store;
    store.claim = async (...args) => ({ ...(await claim.apply(store, args)), nextDueAtMs: NOW_MS, isLocked: true });
    dispatcher.wake();
    await clock.advanceBy(9);
    expect(store.claims.length).toBe(1);
    await clock.advanceBy(1);
    expect(store.claims.length).toBe(2);
    dispatcher.noteDue(NOW_MS);
    await clock.advanceBy(1);
    expect(store.claims.length).toBe(3);
  });

  test('projects are rotated while a claim leaves due messages, starting after the last one', async () => {
    const { clock, store, dispatcher } = bench();
    const { claim } = store;
    const left = [{ nextDueAtMs: NOW_MS }, { nextDueAtMs: NOW_MS, rotation: { after: 7 } }];
    store.claim = async (...args) => ({ ...(await claim.apply(store, args)), ...left.shift() });
    dispatcher.wake();
    await clock.advanceBy(1_000);
    dispatcher.noteDue(NOW_MS);
    await clock.advanceBy(1_000);
    expect(store.claims.map(({ rotation }) => rotation?.after)).toEqual([undefined, 0, 7, undefined]);
  });

  test('a claim for backlogs alone requests no more slots than these can use', async () => {
    const backlog = backlogKey(1, 'https://a.example');
    const settings = { inFlightMax: 1_000, inFlightPerOriginMax: 10 };
    const { clock, store, network, dispatcher } = bench({ settings, waitingBacklogs: [backlog] });
    setReply(network, 'https://a.example', { kind: 'answer', status: 200, afterMs: 100 });
    for (let key = 1; key <= 30; key += 1) store.add(to('a', key), { isInBacklog: true });
    dispatcher.wake();
    await clock.advanceBy(150);
    const [first, ...others] = store.claims;
    expect([first?.due, first?.limit]).toEqual([true, 64]); // at the start, the next due time is unknown
    expect(others.map(({ due }) => due)).toEqual(others.map(() => false));
    expect(others.length).toBeGreaterThan(0);
    for (const { limit } of others) expect(limit).toBeLessThanOrEqual(10);
  });

  test('a silent origin starts more waiting messages as time passes, even if nothing else happens', async () => {
    const settings = { inFlightMax: 1_000, inFlightPerOriginMax: 16 };
    const { clock, store, network, dispatcher } = bench({ settings });
    setReply(network, 'https://a.example', { kind: 'silence' });
    for (let key = 1; key <= 30; key += 1) store.add(to('a', key));
    dispatcher.wake();
    const sent: number[] = [];
    for (let second = 0; second < 5; second += 1) {
      await clock.advanceBy(1_000);
      sent.push(network.attempts.length);
    }
    expect(sent).toEqual([4, 8, 8, 16, 16]);
  });

  test('a message that had no capacity before gets the slot of an attempt that has become silent', async () => {
    const { clock, store, network, dispatcher, sent } = bench({ settings: { inFlightMax: 1 } });
    setReply(network, 'https://hangs.example', { kind: 'silence' });
    store.add(to('hangs', 1));
    dispatcher.wake();
    await clock.advanceBy(1_000);
    store.add(to('a', 2));
    dispatcher.noteDue(NOW_MS);
    await clock.advanceBy(900);
    expect(sent()).toEqual([1]);
    await clock.advanceBy(200);
    expect(sent()).toEqual([1, 2]);
  });

  test('a shutdown waits for attempts that have no slot any more, and releases them at its limit', async () => {
    const { clock, store, network, dispatcher } = bench({ settings: { inFlightMax: 1 } });
    setReply(network, 'https://hangs.example', { kind: 'silence' });
    for (let key = 1; key <= 3; key += 1) store.add(to('hangs', key));
    dispatcher.wake();
    await clock.advanceBy(10_000);
    expect([network.attempts.length, dispatcher.inFlight.count]).toEqual([3, 3]);
    let isOver = false;
    void dispatcher.drain(5_000).then(() => {
      isOver = true;
    });
    await clock.advanceBy(4_900);
    expect([isOver, store.released.length]).toEqual([false, 0]);
    await clock.advanceBy(200);
    expect([isOver, store.released.length]).toEqual([true, 3]);
  });

  test('a backlog of one project does not wait for another project’s backlog of the same origin', async () => {
    const backlogs = [backlogKey(1, 'https://a.example'), backlogKey(2, 'https://a.example')];
    const { clock, store, network, dispatcher } = bench({
      settings: { inFlightPerOriginMax: 2 },
      waitingBacklogs: backlogs,
    });
    setReply(network, 'https://a.example', { kind: 'answer', status: 200, afterMs: 100 });
    for (let key = 1; key <= 50; key += 1) store.add(to('a', key), { isInBacklog: true });
    for (let key = 100; key < 105; key += 1) store.add(to('a', key, { projectId: 2 }), { isInBacklog: true });
    dispatcher.wake();
    await clock.advanceBy(1_000);
    expect(network.attempts.filter(({ claimed }) => claimed.message.projectId === 2)).toHaveLength(5);
  });

  test('a message for a full origin waits in its backlog and starts when there is capacity', async () => {
    const { clock, store, network, dispatcher } = bench({ settings: { inFlightPerOriginMax: 1 } });
    for (let key = 1; key <= 5; key += 1) store.add(to('a', key));
    dispatcher.wake();
    await clock.advanceBy(5);
    expect(network.attempts.length).toBe(1);
    expect([...store.rows.values()].filter(({ isInBacklog }) => isInBacklog).length).toBe(4);
    await clock.advanceBy(1_000);
    expect(network.attempts.length).toBe(5);
    expect(store.rows.size).toBe(0);
  });
});

describe('its log events', () => {
  test('report a message that is dead', async () => {
    const { clock, store, network, dispatcher, warnings } = bench();
    setReply(network, 'https://a.example', { kind: 'answer', status: 500, afterMs: 10 });
    store.add(to('a', 1, { settings: { dialect: 'upstash', maxRetries: 0 } }));
    dispatcher.wake();
    await clock.advanceBy(1_000);
    expect(warnings).toEqual(['message_buried']);
  });

  test('report no next attempt of a message whose cancel was requested', async () => {
    const { clock, store, network, dispatcher, details } = bench();
    setReply(network, 'https://a.example', { kind: 'answer', status: 500, afterMs: 10 });
    for (const key of [1, 2]) store.add(to('a', key));
    store.cancelRequested.add(2);
    dispatcher.wake();
    await clock.advanceBy(1_000);
    expect(details).toEqual(['attempt 2 in 12 s', 'none, it is cancelled']);
  });

  test('report an origin that does not respond, once it is held back', async () => {
    const { clock, store, network, dispatcher, warnings } = bench({ settings: { inFlightPerOriginMax: 10 } });
    setReply(network, 'https://a.example', { kind: 'reset', afterMs: 10 });
    for (let key = 1; key <= 5; key += 1) store.add(to('a', key));
    dispatcher.wake();
    await clock.advanceBy(1_000);
    expect(warnings).toEqual(['origin_held_back']);
  });
});

describe('while the store refuses', () => {
  test('an outcome is kept and saved as soon as the store accepts it, and the message is not sent again', async () => {
    const { clock, store, network, dispatcher, warnings } = bench();
    store.add(to('a', 1));
    dispatcher.wake();
    await clock.advanceBy(5);
    store.refuses = true;
    await clock.advanceBy(60_000);
    // 100 ms, doubled each time up to 5 s: 0.1, 0.3, 0.7, 1.5, 3.1, 6.3, then every 5 s.
    expect(store.refusals).toBe(17);
    expect(warnings).toContain('settle_failed');
    store.refuses = false;
    await clock.advanceBy(5_000);
    expect(store.rows.size).toBe(0);
    expect(network.attempts.length).toBe(1);
  });

  test('a claim is retried every five seconds, not at once', async () => {
    const { clock, store, dispatcher, sent, warnings } = bench();
    store.add(to('a', 1));
    store.refuses = true;
    dispatcher.wake();
    await clock.advanceBy(14_999);
    expect(store.refusals).toBe(3);
    expect(warnings).toEqual(['claim_failed', 'claim_failed', 'claim_failed']);
    store.refuses = false;
    await clock.advanceBy(1);
    expect(sent()).toEqual([1]);
  });
});

describe('a result', () => {
  test('of an attempt whose message was claimed again frees the slot and nothing else', async () => {
    const { clock, store, dispatcher } = bench({ settings: { inFlightMax: 1 } });
    store.add(to('a', 1));
    dispatcher.wake();
    await clock.advanceBy(5);
    const row = store.rows.get(1);
    if (row) row.claimToken = 999_999;
    await clock.advanceBy(100);
    expect(store.rows.has(1)).toBe(true);
    expect(dispatcher.tryReserve('1 https://a.example', 0, 1)).toBe('reserved');
  });

  test('that fails a run is decided again each time that the run has changed, and never given up', async () => {
    const { clock, store, network, dispatcher } = bench();
    setReply(network, 'https://a.example', { kind: 'answer', status: 500, afterMs: 10 });
    const run = { key: 1, id: 'r', createdAtMs: NOW_MS, url: 'https://a.example', callType: 'step' as const };
    store.add(to('a', 1, { settings: { dialect: 'upstash', maxRetries: 0, run: { ...run, features: [] } } }));
    const settle = store.messages.settle.bind(store);
    let changes = 0;
    store.messages.settle = async (settlement) => {
      changes += 1;
      return changes <= 1_000 ? { kind: 'runChanged' } : await settle(settlement);
    };
    dispatcher.wake();
    await clock.advanceBy(20);
    expect(store.rows.size).toBe(0);
    expect(network.attempts.length).toBe(1);
  });

  test('that asks for a retry returns the message at its due time', async () => {
    const { clock, store, network, dispatcher } = bench();
    setReply(network, 'https://a.example', { kind: 'answer', status: 500, afterMs: 10 });
    store.add(to('a', 1));
    dispatcher.wake();
    await clock.advanceBy(12_009);
    expect(network.attempts.length).toBe(1);
    await clock.advanceBy(1);
    expect(network.attempts.map(({ retried }) => retried)).toEqual([0, 1]);
  });
});

describe('a drain', () => {
  test('waits for running attempts, claims nothing more, and saves the outcomes', async () => {
    const { clock, store, network, dispatcher } = bench();
    setReply(network, 'https://a.example', { kind: 'answer', status: 200, afterMs: 3_000 });
    store.add(to('a', 1));
    dispatcher.wake();
    await clock.advanceBy(5);
    let drainedAtMs: number | undefined;
    const drained = dispatcher.drain(10_000).then(() => {
      drainedAtMs = clock.elapsedMs;
    });
    store.add(to('a', 2));
    dispatcher.noteDue(NOW_MS);
    await clock.advanceBy(20_000);
    await drained;
    expect(drainedAtMs).toBe(3_000);
    expect([...store.rows.keys()]).toEqual([2]);
    expect(network.attempts.length).toBe(1);
    expect(dispatcher.tryReserve('1 https://a.example', 0, 1)).toBe('none');
  });

  test('releases running attempts uncounted at its limit', async () => {
    const { clock, store, network, dispatcher } = bench();
    setReply(network, 'https://a.example', { kind: 'silence' });
    store.add(to('a', 1));
    dispatcher.wake();
    await clock.advanceBy(5);
    const drained = dispatcher.drain(10_000);
    await clock.advanceBy(9_999);
    expect(store.released).toEqual([]);
    await clock.advanceBy(1);
    await drained;
    expect(store.released).toEqual([1]);
    expect(store.rows.get(1)?.retried).toBe(0);
    expect(store.settlements).toEqual([]);
  });

  test('starts no message that a claim returns after its limit', async () => {
    const { clock, store, network, dispatcher } = bench();
    store.add(to('a', 1));
    store.beforeWrite = () => clock.delay(100);
    dispatcher.wake();
    await clock.advanceBy(150);
    const drained = dispatcher.drain(0);
    await clock.advanceBy(1_000);
    await drained;
    expect(network.attempts).toEqual([]);
    expect(store.released).toEqual([1]);
  });

  test('ends at its limit although the store refuses', async () => {
    const { clock, store, dispatcher } = bench();
    store.add(to('a', 1));
    dispatcher.wake();
    await clock.advanceBy(5);
    store.refuses = true;
    await clock.advanceBy(4_000);
    let drainedAtMs: number | undefined;
    const drained = dispatcher.drain(1_000).then(() => {
      drainedAtMs = clock.elapsedMs;
    });
    await clock.advanceBy(60_000);
    await drained;
    expect(drainedAtMs).toBe(5_005);
    expect(store.rows.get(1)?.claimToken).toBeDefined(); // starts again at the next start
  });

  test('of an idle dispatcher ends at once and leaves no timer', async () => {
    const { clock, store, dispatcher } = bench();
    store.add(to('a', 1, { notBeforeMs: NOW_MS + 60_000 }));
    dispatcher.wake();
    await clock.advanceBy(5);
    await dispatcher.drain(10_000);
    expect(clock.nextTimerAtMs).toBeUndefined();
  });
});

describe('while the messages of a claim take long to start', () => {
  const slow = async () => {
    const turns: (() => void)[] = [];
    const world = bench({ endOfTurn: () => new Promise((resolve) => turns.push(resolve)) });
    for (const key of [1, 2, 3]) world.store.add(to('abc'[key - 1] ?? '', key));
    world.dispatcher.wake();
    await world.clock.advanceBy(0);
    const endTurn = () => {
      turns.shift()?.();
      return world.clock.advanceBy(0);
    };
    return { ...world, endTurn };
  };

  test('other work runs in between, and nothing more is claimed', async () => {
    const { store, dispatcher, sent, endTurn } = await slow();
    expect(sent()).toEqual([1]);
    store.add(to('d', 4));
    dispatcher.noteDue(NOW_MS);
    await endTurn();
    expect(sent()).toEqual([1, 2]);
    expect(store.claims).toHaveLength(1);
    await endTurn();
    expect(sent()).toEqual([1, 2, 3]);
    await endTurn();
    expect(store.claims.length).toBeGreaterThan(1);
    expect(sent()).toEqual([1, 2, 3, 4]);
  });

  test('messages that have not started are released when attempts are interrupted', async () => {
    const { store, dispatcher, sent, endTurn } = await slow();
    dispatcher.interrupt();
    await endTurn();
    await endTurn();
    expect(sent()).toEqual([1]);
    expect(store.released.toSorted()).toEqual([1, 2, 3]);
  });
});

describe('while the worker may have expired', () => {
  const fenced = (options: Parameters<typeof bench>[0] = {}) => {
    const fence = { isClosed: false, mayStart: () => !fence.isClosed };
    return { fence, ...bench({ ...options, fence }) };
  };

  test('it claims nothing and accepts nothing as claimed, and continues when it is notified', async () => {
    const { fence, clock, store, dispatcher, sent } = fenced();
    fence.isClosed = true;
    store.add(to('a', 1));
    dispatcher.wake();
    dispatcher.noteDue(NOW_MS);
    await clock.advanceBy(60_000);
    expect(store.claims).toEqual([]);
    expect(dispatcher.tryReserve('1 https://a.example', 0, 1)).toBe('none');
    fence.isClosed = false;
    dispatcher.wake();
    await clock.advanceBy(100);
    expect(sent()).toEqual([1]);
  });

  test('messages that it has just claimed are not sent, and are released', async () => {
    const { fence, clock, store, dispatcher, sent } = fenced();
    store.add(to('a', 1));
    store.beforeWrite = () => clock.delay(5);
    dispatcher.wake();
    await clock.advanceBy(7);
    fence.isClosed = true;
    await clock.advanceBy(100);
    expect(store.claims.length).toBe(1);
    expect(sent()).toEqual([]);
    expect(store.released).toEqual([1]);
  });

  test('interrupted attempts are released uncounted, and made again later', async () => {
    const { clock, store, dispatcher, network, sent } = fenced();
    setReply(network, 'https://a.example', { kind: 'silence' });
    store.add(to('a', 1));
    dispatcher.wake();
    await clock.advanceBy(100);
    dispatcher.interrupt();
    expect(network.attempts[0]?.outcome).toEqual({ kind: 'interrupted' });
    setReply(network, 'https://a.example', { kind: 'answer', status: 200, afterMs: 10 });
    await clock.advanceBy(0);
    expect(store.released).toEqual([1]);
    dispatcher.noteDue(NOW_MS);
    await clock.advanceBy(1_000);
    expect(sent()).toEqual([1, 1]);
    expect(store.settlements).toHaveLength(1);
  });
});

describe('while a project may have moved away', () => {
  test('its attempts are interrupted and released, and those of others continue', async () => {
    const { clock, store, dispatcher, network } = bench();
    setReply(network, 'https://a.example', { kind: 'silence' });
    store.add(to('a', 1));
    store.add(to('a', 2, { projectId: 2 }));
    dispatcher.wake();
    await clock.advanceBy(100);
    expect([dispatcher.countOf(1), dispatcher.countOf(2)]).toEqual([1, 1]);
    dispatcher.interrupt(2);
    await clock.advanceBy(0);
    expect(network.attempts.map(({ outcome }) => outcome)).toEqual([undefined, { kind: 'interrupted' }]);
    expect(store.released).toEqual([2]);
  });

  test('the check uses the time of the poll that returned the claim', async () => {
    const asked: number[][] = [];
    const fence = {
      isClosed: false,
      mayStart: (...args: number[]) => {
        asked.push(args);
        return false;
      },
    };
    const { clock, store, dispatcher, sent } = bench({ fence });
    store.add(to('a', 1));
    store.beforeWrite = () => clock.delay(50);
    const askedAtMs = clock.elapsedMs;
    dispatcher.wake();
    await clock.runUntil(() => asked.length > 0, 1_000);
    expect(clock.elapsedMs - askedAtMs).toBeGreaterThanOrEqual(50);
    expect(asked).toEqual([[1, askedAtMs]]);
    await clock.runUntil(() => store.released.length > 0, 1_000);
    expect(sent()).toEqual([]);
  });
});

describe('its own claims', () => {
  test('include requested ones, those that are being saved, and those of running attempts', async () => {
    const { clock, store, dispatcher } = bench();
    expect(dispatcher.hasClaim(77)).toBe(false);
    expect(dispatcher.tryReserve('1 https://a.example', 0, 77)).toBe('reserved');
    expect(dispatcher.hasClaim(77)).toBe(true);
    dispatcher.giveBack(77);
    expect(dispatcher.hasClaim(77)).toBe(false);
    store.add(to('a', 1));
    store.beforeWrite = () => clock.delay(5);
    dispatcher.noteDue(NOW_MS);
    await clock.advanceBy(7);
    const token = store.claims[0]?.firstToken ?? 1;
    expect(dispatcher.hasClaim(token)).toBe(true); // whatever the answer says
    await clock.advanceBy(5);
    expect(dispatcher.hasClaim(token)).toBe(true); // its attempt runs
    expect(dispatcher.hasClaim(token + 1)).toBe(false);
    await clock.advanceBy(1_000);
    expect(dispatcher.hasClaim(token)).toBe(false);
  });
});

describe('a cancel of a claimed message', () => {
  test('interrupts its attempt, and frees the slot at once', async () => {
    const { clock, store, network, dispatcher } = bench();
    setReply(network, 'https://a.example', { kind: 'silence' });
    store.add(to('a', 1));
    dispatcher.wake();
    await clock.advanceBy(1_000);
    expect(dispatcher.inFlight.count).toBe(1);
    dispatcher.interruptCancelled([network.attempts[0]?.claimToken ?? -1]);
    await clock.advanceBy(0);
    expect([network.attempts[0]?.outcome, dispatcher.inFlight.count]).toEqual([{ kind: 'interrupted' }, 0]);
  });

  test('does not affect other claims', async () => {
    const { clock, store, network, dispatcher } = bench();
    setReply(network, 'https://a.example', { kind: 'silence' });
    store.add(to('a', 1));
    dispatcher.wake();
    await clock.advanceBy(1_000);
    dispatcher.interruptCancelled([999]);
    await clock.advanceBy(0);
    expect(dispatcher.inFlight.count).toBe(1);
  });
});
