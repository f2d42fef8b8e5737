import { expect, it } from 'vitest';
import { type BacklogKey, backlogKey } from '../../../src/engine/lanes/backlog-key.ts';
import { bytes, delivered, eachWorld, type OpenStore, OTHER_PROJECT, PROJECT, retrying, T0 } from './world.ts';

const A = 'https://a.example';
const B = 'https://b.example';
const BACKLOG_A = backlogKey(PROJECT, A);
const BACKLOG_B = backlogKey(PROJECT, B);

export function claimConformance(open: OpenStore): void {
  const world = eachWorld(open);
  const keysOf = (result: { claimed: { message: { key: number } }[] }) =>
    result.claimed.map(({ message }) => message.key);

  it('claims due messages by due time and then key, each under the next token, and logs ACTIVE', async () => {
    const late = await world().accept({ notBeforeMs: T0 + 20 });
    const early = await world().accept({ notBeforeMs: T0 + 10, body: bytes('hello'), header: { 'X-A': ['1'] } });
    const alsoLate = await world().accept({ notBeforeMs: T0 + 20 });
    const future = await world().accept({ notBeforeMs: T0 + 31 });
    const result = await world().claim({ firstToken: 500_000 }, T0 + 30);
    expect(result.claimed).toEqual([
      { message: early, retried: 0, isAlone: true, dueAtMs: T0 + 10, claimToken: 500_000, claimedAtMs: T0 + 30 },
      { message: late, retried: 0, isAlone: true, dueAtMs: T0 + 20, claimToken: 500_001, claimedAtMs: T0 + 30 },
      { message: alsoLate, retried: 0, isAlone: true, dueAtMs: T0 + 20, claimToken: 500_002, claimedAtMs: T0 + 30 },
    ]);
    expect(result).toMatchObject({ waitingBacklogs: [], emptied: [], nextDueAtMs: T0 + 31 });
    expect(await world().statesOf(early)).toEqual(['CREATED', 'ACTIVE']);
    expect(await world().statesOf(future)).toEqual(['CREATED']);
  });

  it('gives a message to one claim only', async () => {
    const messages = await Promise.all(Array.from({ length: 20 }, () => world().accept({ url: A })));
    const results = await Promise.all(
      Array.from({ length: 5 }, () => world().claim({ limit: 7, backlogsToServe: [BACKLOG_A] })),
    );
    const keys = results.flatMap(keysOf);
    expect(keys.toSorted((a, b) => a - b)).toEqual(messages.map(({ key }) => key));
    const tokens = results.flatMap(({ claimed }) => claimed.map(({ claimToken }) => claimToken));
    expect(new Set(tokens).size).toBe(20);
  });

  it('claims no more than requested, and returns that more is due', async () => {
    const messages = Array.from({ length: 400 }, () => world().message({ url: A }));
    await world().save(messages);
    const result = await world().claim({ limit: 3 });
    expect(result.claimed).toHaveLength(3);
    expect(result.nextDueAtMs).toBe(T0);
    expect((await world().claim({ limit: 0 })).claimed).toEqual([]);
  });

  it('moves examined messages without a slot into backlogs, so that many of them do not delay others', async () => {
    const crowd = Array.from({ length: 300 }, () => world().message({ url: A }));
    await world().save(crowd);
    const other = await world().accept({ url: B, notBeforeMs: T0 + 1 });
    const first = await world().claim({ limit: 1 }, T0 + 1);
    expect(first).toMatchObject({ waitingBacklogs: [BACKLOG_A], nextDueAtMs: T0 });
    expect(first.claimed).toHaveLength(1);
    for (let claims = 0; claims < 4; claims += 1) await world().claim({ limit: 1 }, T0 + 1);
    expect(await world().waitingBacklogs()).toEqual([BACKLOG_A, BACKLOG_B]);
    expect(keysOf(await world().claim({ limit: 1, due: false, backlogsToServe: [BACKLOG_B] }, T0 + 1))).toEqual([
      other.key,
    ]);
  });

  it('rotates projects on request, each in its own order, and returns the last one served', async () => {
    const crowd = Array.from({ length: 200 }, () => world().message({ url: A }));
    await world().save(crowd);
    const fresh = await world().accept({ projectId: OTHER_PROJECT, url: B, notBeforeMs: T0 + 1 });
    const later = await world().accept({ projectId: OTHER_PROJECT, url: B, notBeforeMs: T0 + 2 });
    const both = await world().claim({ limit: 4, rotation: { after: 0 } }, T0 + 1);
    expect(keysOf(both)).toEqual([...crowd.slice(0, 3).map(({ message }) => message.key), fresh.key].concat());
    expect((await world().claim({ limit: 1, rotation: { after: PROJECT } }, T0 + 2)).rotation?.after).toBe(
      OTHER_PROJECT,
    );
    expect(await world().statesOf(later)).toEqual(['CREATED', 'ACTIVE']);
    expect((await world().claim({ limit: 1, rotation: { after: OTHER_PROJECT } }, T0 + 2)).rotation?.after).toBe(
      PROJECT,
    );
  });

  it('gives half of the slots to a project that has only just begun to wait while others are far behind', async () => {
    const DAY_MS = 86_400_000;
    const behind = Array.from({ length: 90 }, (_, nth) => world().message({ url: A, projectId: 1 + (nth % 3) }));
    const fresh = Array.from({ length: 90 }, () => world().message({ url: B, projectId: 4, notBeforeMs: T0 + DAY_MS }));
    await world().save([...behind, ...fresh]);
    const { claimed, rotation } = await world().claim({ limit: 64, rotation: { after: 0 } }, T0 + DAY_MS);
    const counts = Object.entries(Object.groupBy(claimed, ({ message }) => message.projectId));
    expect(counts.map(([projectId, each]) => [projectId, each?.length])).toEqual([
      ['1', 11],
      ['2', 11],
      ['3', 10],
      ['4', 32],
    ]);
    expect(rotation?.after).toBe(3);
  });

  it('searches for projects with due messages every 200 ms, and when the known ones have none', async () => {
    const messages = [0, 10, 20].map((ms) => world().message({ url: A, notBeforeMs: T0 + ms }));
    await world().save(messages);
    const keys = messages.map(({ message }) => message.key);
    const first = await world().claim({ limit: 1, rotation: { after: 0 } }, T0);
    const { rotation } = first;
    const fresh = await world().accept({ projectId: OTHER_PROJECT, url: B });
    const second = await world().claim({ limit: 1, rotation }, T0 + 10);
    const third = await world().claim({ limit: 2, rotation: second.rotation }, T0 + 20);
    const none = await world().claim({ limit: 1, rotation: third.rotation }, T0 + 20);
    expect([first, second, third, none].map(keysOf)).toEqual([...keys.map((key) => [key]), []]);
    expect(none.nextDueAtMs).toBe(T0);
    expect(none.rotation).toEqual({ after: PROJECT });
    expect(keysOf(await world().claim({ limit: 1, rotation }, T0 + 200))).toEqual([fresh.key]);
  });

  it('skips messages before the first message that was seen of a project', async () => {
    const messages = [0, 1, 2].map((ms) => world().message({ url: A, notBeforeMs: T0 + ms }));
    await world().save(messages);
    const [, second = 0, third] = messages.map(({ message }) => message.key);
    const seen = { atMs: T0, projects: [{ id: PROJECT, dueAtMs: T0 + 1, key: second }] };
    const { claimed } = await world().claim({ limit: 2, rotation: { after: 0, seen } }, T0 + 2);
    expect(keysOf({ claimed })).toEqual([second, third]);
  });

  it('claims no more bytes than requested, in order, but always one message', async () => {
    const large = await world().accept({ url: A, body: new Uint8Array(100) });
    const small = await world().accept({ url: A, body: new Uint8Array(10) });
    const large2 = await world().accept({ url: A, body: new Uint8Array(100) });
    const small2 = await world().accept({ url: A, body: new Uint8Array(10) });
    expect(keysOf(await world().claim({ bytesMax: 50 }))).toEqual([large.key]);
    expect(keysOf(await world().claim({ bytesMax: 50, backlogsToServe: [BACKLOG_A] }))).toEqual([small.key]);
    expect(keysOf(await world().claim({ bytesMax: 110, backlogsToServe: [BACKLOG_A] }))).toEqual([
      large2.key,
      small2.key,
    ]);
  });

  it('lets no small message overtake a large one for which no bytes are left', async () => {
    const first = await world().accept({ body: bytes('xx') });
    await world().accept({ body: bytes('xxxxxx') });
    await world().accept({ body: bytes('x') });
    expect(keysOf(await world().claim({ bytesMax: 5 }))).toEqual([first.key]);
  });

  /** One message in the due index, and one in the wait list of a key with capacity. */
  async function dueAndListed(): Promise<{ due: number; listed: number }> {
    const settings = { flowControl: { key: 'k', parallelism: 1, periodS: 1 } };
    const { message, claimToken } = await world().acceptClaimed({ settings });
    const listed = await world().accept({ settings });
    await world().settle(message, claimToken, delivered());
    return { due: (await world().accept()).key, listed: listed.key };
  }

  it('claims no due messages from the index or from the wait list of a key unless requested', async () => {
    const { due, listed } = await dueAndListed();
    expect(keysOf(await world().claim({ due: false }))).toEqual([]);
    expect(keysOf(await world().claim())).toEqual([listed, due]);
  });

  it.each([true, false])(
    'starts with the wait lists of keys or with the index, as requested: %s',
    async (lanesFirst) => {
      const { due, listed } = await dueAndListed();
      expect(keysOf(await world().claim({ limit: 1, lanesFirst }))).toEqual([lanesFirst ? listed : due]);
    },
  );

  it('claims no message that is larger than the requested bytes, if another claim may exceed its own limit', async () => {
    const large = await world().accept({ url: A, body: new Uint8Array(100) });
    expect(await world().claim({ bytesMax: 50, isStrict: true })).toMatchObject({
      claimed: [],
      waitingBacklogs: [BACKLOG_A],
    });
    expect(await world().claim({ bytesMax: 50, isStrict: true, backlogsToServe: [BACKLOG_A] })).toMatchObject({
      claimed: [],
      emptied: [],
    });
    expect(keysOf(await world().claim({ bytesMax: 50, backlogsToServe: [BACKLOG_A] }))).toEqual([large.key]);
  });

  it('moves due messages of a full origin into its backlog, so that they delay no others', async () => {
    const first = await world().accept({ url: `${A}/1` });
    const second = await world().accept({ url: `${A}/2` });
    const third = await world().accept({ url: `${A}/3` });
    const other = await world().accept({ url: `${B}/1` });
    const result = await world().claim({ capacityByOrigin: { [A]: 1 } });
    expect(keysOf(result)).toEqual([first.key, other.key]);
    expect(result).toMatchObject({ waitingBacklogs: [BACKLOG_A], nextDueAtMs: undefined });
    expect(await world().waitingBacklogs()).toEqual([BACKLOG_A]);
    expect(keysOf(await world().claim())).toEqual([]);

    const fromBacklog = await world().claim({ due: false, backlogsToServe: [BACKLOG_A], capacityByOrigin: { [A]: 1 } });
    expect(keysOf(fromBacklog)).toEqual([second.key]);
    expect(fromBacklog.emptied).toEqual([]);
    const rest = await world().claim({ due: false, backlogsToServe: [BACKLOG_A] });
    expect(keysOf(rest)).toEqual([third.key]);
    expect(rest.emptied).toEqual([BACKLOG_A]);
    expect(await world().waitingBacklogs()).toEqual([]);
  });

  it('has a backlog for the longest possible origin', async () => {
    const origin = `https://${'h'.repeat(253)}:65535`;
    const { key } = await world().accept({ url: `${origin}/` });
    const { waitingBacklogs } = await world().claim({ capacityByOrigin: { [origin]: 0 } });
    expect(waitingBacklogs).toEqual([backlogKey(PROJECT, origin)]);
    expect(keysOf(await world().claim({ due: false, backlogsToServe: waitingBacklogs }))).toEqual([key]);
  });

  it('gives the default capacity to an origin without its own', async () => {
    for (let index = 0; index < 3; index++) await world().accept({ url: A });
    const result = await world().claim({ defaultCapacity: 2 });
    expect(result.claimed).toHaveLength(2);
    expect(result.waitingBacklogs).toEqual([BACKLOG_A]);
  });

  it('gets past many messages of one full origin within a few claims, each of which examines 500 messages', async () => {
    const crowd = Array.from({ length: 1_500 }, () => world().message({ url: A }));
    await world().save(crowd);
    const healthy = await world().accept({ url: B, notBeforeMs: T0 + 1 });
    const claimed: number[][] = [];
    for (let claims = 0; claims < 4; claims++) {
      claimed.push(keysOf(await world().claim({ capacityByOrigin: { [A]: 0 } }, T0 + 1)));
    }
    expect(claimed).toEqual([[], [], [], [healthy.key]]);
  });

  it('takes no more messages of a project than its capacity, and moves the others into their backlogs', async () => {
    for (let index = 0; index < 3; index += 1) await world().accept({ url: A });
    const other = await world().accept({ url: A, projectId: OTHER_PROJECT });
    const projects = { capacityByProject: { [PROJECT]: 1 }, defaultCapacity: 5 };
    const result = await world().claim({ projects });
    expect(result.claimed.map(({ message }) => message.projectId)).toEqual([PROJECT, OTHER_PROJECT]);
    expect(keysOf(result)).toContain(other.key);
    expect(result.waitingBacklogs).toEqual([BACKLOG_A]);
    expect(
      (
        await world().claim({
          backlogsToServe: [BACKLOG_A],
          projects: { ...projects, capacityByProject: { [PROJECT]: 2 } },
        })
      ).claimed,
    ).toHaveLength(2);
  });

  it('takes no more than the capacity for endpoints that have not responded recently, in total and per project', async () => {
    const urls = Array.from({ length: 4 }, (_, index) => `https://new-${index}.example`);
    for (const url of urls) await world().accept({ url });
    for (const url of urls) await world().accept({ url, projectId: OTHER_PROJECT });
    const known = await world().accept({ url: A });
    const unknown = { slots: 3, capacityByProject: { [PROJECT]: 2 }, defaultCapacity: 5, healthy: [BACKLOG_A] };
    const result = await world().claim({ unknown });
    expect(result.claimed.map(({ message }) => message.projectId)).toEqual([PROJECT, PROJECT, OTHER_PROJECT, PROJECT]);
    expect(keysOf(result)).toContain(known.key);
    expect(result.waitingBacklogs).toHaveLength(5);
  });

  it('takes no more of a backlog than its capacity, however much capacity its origin has', async () => {
    for (let index = 0; index < 3; index += 1) await world().accept({ url: A });
    await world().accept({ url: A, projectId: OTHER_PROJECT });
    const { claimed } = await world().claim({ capacityByBacklog: { [BACKLOG_A]: 1 } });
    expect(claimed.map(({ message }) => message.projectId)).toEqual([PROJECT, OTHER_PROJECT]);
  });

  it('queues due messages behind their own backlog while it has messages, whoever is served, and behind no other backlog', async () => {
    const inBacklog = { kind: 'origin', dueAtMs: T0 } as const;
    const [first, second] = [
      await world().accept({ url: A, state: inBacklog }),
      await world().accept({ url: A, state: inBacklog }),
    ];
    const late = await world().accept({ url: A, notBeforeMs: T0 + 1 });
    const other = await world().accept({ url: A, projectId: OTHER_PROJECT, notBeforeMs: T0 + 1 });
    const result = await world().claim({ hasBacklogs: true }, T0 + 1);
    expect([keysOf(result), result.waitingBacklogs]).toEqual([[other.key], [BACKLOG_A]]);
    expect(keysOf(await world().claim({ backlogsToServe: [BACKLOG_A], hasBacklogs: true }, T0 + 1))).toEqual(
      [first, second, late].map(({ key }) => key),
    );
  });

  it('takes a due message together with the last messages of its backlog, which it empties', async () => {
    const inBacklog = await world().accept({ url: A, state: { kind: 'origin', dueAtMs: T0 } });
    const due = await world().accept({ url: A, notBeforeMs: T0 + 1 });
    const result = await world().claim({ backlogsToServe: [BACKLOG_A], hasBacklogs: true }, T0 + 1);
    expect([keysOf(result), result.emptied]).toEqual([[inBacklog.key, due.key], [BACKLOG_A]]);
  });

  it('serves backlogs before due messages, or after them', async () => {
    for (const dueFirst of [false, true]) {
      const inBacklog = await world().accept({ url: A, state: { kind: 'origin', dueAtMs: T0 } });
      const due = await world().accept({ url: B });
      const rest = { backlogsToServe: [BACKLOG_A], dueFirst, limit: 1 };
      expect(keysOf(await world().claim(rest))).toEqual([(dueFirst ? due : inBacklog).key]);
      expect(keysOf(await world().claim(rest))).toEqual([(dueFirst ? inBacklog : due).key]);
    }
  });

  it('reserves half of its slots for the second of backlogs and due messages', async () => {
    const inBacklog = Array.from({ length: 100 }, () =>
      world().message({ url: A, state: { kind: 'origin', dueAtMs: T0 } }),
    );
    const due = Array.from({ length: 100 }, () => world().message({ url: B }));
    await world().save([...inBacklog, ...due]);
    const ofBacklog = new Set(inBacklog.map(({ message }) => message.key));
    for (const dueFirst of [false, true]) {
      const claimed = keysOf(await world().claim({ backlogsToServe: [BACKLOG_A], dueFirst, limit: 65 }));
      expect([claimed.length, claimed.filter((key) => ofBacklog.has(key)).length]).toEqual([65, dueFirst ? 32 : 33]);
    }
  });

  it('gives slots to due messages for which backlogs have no capacity', async () => {
    const inBacklog = Array.from({ length: 10 }, () =>
      world().message({ url: A, state: { kind: 'origin', dueAtMs: T0 } }),
    );
    const due = Array.from({ length: 10 }, () => world().message({ url: B }));
    await world().save([...inBacklog, ...due]);
    const result = await world().claim({
      backlogsToServe: [BACKLOG_A],
      dueFirst: true,
      limit: 6,
      capacityByOrigin: { [A]: 1 },
    });
    expect(result.claimed.map(({ message }) => message.origin).toSorted()).toEqual([A, B, B, B, B, B]);
  });

  it('gives the first backlogs all slots that they need, when their projects are not far behind', async () => {
    const stateOf = { state: { kind: 'origin', dueAtMs: T0 } } as const;
    const fresh = Array.from({ length: 20 }, () => world().message({ url: A, ...stateOf }));
    await world().save(fresh);
    const others = Array.from({ length: 20 }, () => world().message({ url: B, projectId: OTHER_PROJECT, ...stateOf }));
    await world().save(others);
    const backlogsToServe = [BACKLOG_A, backlogKey(OTHER_PROJECT, B)];
    const claimed = keysOf(await world().claim({ backlogsToServe, freshBacklogs: 1, due: false, limit: 22 }));
    expect(claimed).toEqual([...fresh, ...others.slice(0, 2)].map(({ message }) => message.key));
  });

  it('gives one backlog no more than eight slots while backlogs of other projects wait for the same slots', async () => {
    const stateOf = { state: { kind: 'origin', dueAtMs: T0 } } as const;
    const crowd = Array.from({ length: 20 }, () => world().message({ url: A, ...stateOf }));
    await world().save(crowd);
    const other = await world().accept({ url: B, projectId: OTHER_PROJECT, ...stateOf });
    const backlogsToServe = [BACKLOG_A, backlogKey(OTHER_PROJECT, B)];
    const claimed = keysOf(await world().claim({ backlogsToServe, due: false, limit: 9 }));
    expect(claimed).toEqual([...crowd.slice(0, 8).map(({ message }) => message.key), other.key]);
  });

  it('serves a separate backlog for each project of the same origin', async () => {
    const inBacklog = { kind: 'origin', dueAtMs: T0 } as const;
    for (let index = 0; index < 3; index += 1) await world().accept({ url: A, state: inBacklog });
    const other = await world().accept({ url: A, projectId: OTHER_PROJECT, state: inBacklog });
    const line = backlogKey(OTHER_PROJECT, A);
    expect(await world().waitingBacklogs()).toEqual([BACKLOG_A, line]);
    const result = await world().claim({ due: false, backlogsToServe: [line] });
    expect([keysOf(result), result.emptied]).toEqual([[other.key], [line]]);
  });

  it('lists backlogs page by page, by project and then origin', async () => {
    const inBacklog = { kind: 'origin', dueAtMs: T0 } as const;
    const lines = [OTHER_PROJECT, PROJECT].flatMap((projectId) => [B, A].map((url) => ({ projectId, url })));
    for (const line of lines) await world().accept({ ...line, state: inBacklog });
    const listed: BacklogKey[] = [];
    for (let after: BacklogKey | undefined; ; ) {
      const piece = await world().store.messages.waitingBacklogs({ after, limit: 1 });
      listed.push(...piece);
      after = piece[0];
      if (!after) break;
    }
    expect(listed).toEqual([BACKLOG_A, BACKLOG_B, backlogKey(OTHER_PROJECT, A), backlogKey(OTHER_PROJECT, B)]);
    expect(await world().store.messages.waitingBacklogs({ after: undefined, limit: 3 })).toEqual(listed.slice(0, 3));
  });

  it('lists the backlogs of a project from the first one on, and those of later projects after them', async () => {
    const inBacklog = { kind: 'origin', dueAtMs: T0 } as const;
    const lines = [OTHER_PROJECT, PROJECT].flatMap((projectId) => [B, A].map((url) => ({ projectId, url })));
    for (const line of lines) await world().accept({ ...line, state: inBacklog });
    const listed = await world().waitingBacklogs();
    const from = (after: BacklogKey) => world().store.messages.waitingBacklogs({ after, limit: 3 });
    expect(await from(backlogKey(PROJECT, ''))).toEqual(listed.slice(0, 3));
    expect(await from(backlogKey(OTHER_PROJECT, ''))).toEqual(listed.slice(2));
    expect(await from(backlogKey(OTHER_PROJECT + 1, ''))).toEqual([]);
  });

  it('serves messages in backlogs first, in the order of the origins, and leaves an origin that it did not reach unchanged', async () => {
    const inBacklog = { kind: 'origin', dueAtMs: T0 } as const;
    const inA = await world().accept({ url: A, state: inBacklog });
    const inB = await world().accept({ url: B, state: inBacklog });
    await world().accept({ url: 'https://c.example' });
    const result = await world().claim({ limit: 1, backlogsToServe: [BACKLOG_B, BACKLOG_A] });
    expect(keysOf(result)).toEqual([inB.key]);
    expect(result.emptied).toEqual([BACKLOG_B]);
    expect(keysOf(await world().claim({ limit: 2, backlogsToServe: [BACKLOG_A] }))).toContain(inA.key);
  });

  it('takes no more of each backlog than its capacity, whatever it has taken of earlier backlogs', async () => {
    const inBacklog = { kind: 'origin', dueAtMs: T0 } as const;
    const inA = await world().accept({ url: A, state: inBacklog });
    const inB = [];
    for (let index = 0; index < 4; index += 1) inB.push((await world().accept({ url: B, state: inBacklog })).key);
    const result = await world().claim({
      due: false,
      backlogsToServe: [BACKLOG_A, BACKLOG_B],
      capacityByOrigin: { [B]: 2 },
    });
    expect([keysOf(result), result.emptied]).toEqual([[inA.key, ...inB.slice(0, 2)], [BACKLOG_A]]);
  });

  it('reports that an origin has an empty backlog even when it has no capacity', async () => {
    expect((await world().claim({ backlogsToServe: [BACKLOG_A], capacityByOrigin: { [A]: 0 } })).emptied).toEqual([
      BACKLOG_A,
    ]);
  });

  it('takes a message out of its backlog although the clock was set back since', async () => {
    const message = await world().accept({ url: A, state: { kind: 'origin', dueAtMs: T0 } });
    const result = await world().claim({ due: false, backlogsToServe: [BACKLOG_A] }, T0 - 3_600_000);
    expect(keysOf(result)).toEqual([message.key]);
    expect(result.claimed[0]?.claimedAtMs).toBe(T0);
  });

  it('never logs ACTIVE before an earlier event of the message, whatever the clock shows', async () => {
    const { message, claimToken } = await world().acceptClaimed();
    await world().settle(message, claimToken, retrying(T0 + 1_000, T0 - 5_000, 1));
    const [claimed] = (await world().claim({}, T0 - 4_000)).claimed;
    expect(claimed).toMatchObject({ claimedAtMs: T0 + 1_000, retried: 1 });
    const times = (await world().logsOf(message)).map(({ atMs }) => atMs);
    expect(times).toEqual(times.toSorted((a, b) => a - b));
  });

  it('never logs ACTIVE before an earlier event, whatever else is claimed with the message', async () => {
    const { message, claimToken } = await world().acceptClaimed();
    await world().settle(message, claimToken, retrying(T0 + 1_000, T0 - 5_000, 1));
    const later = await world().accept({ createdAtMs: T0 + 5_000, notBeforeMs: T0 });
    const { claimed } = await world().claim({}, T0 + 10);
    expect(claimed.map((each) => [each.message.key, each.claimedAtMs])).toEqual([
      [message.key, T0 + 1_000],
      [later.key, T0 + 5_000],
    ]);
  });

  it('releases claims uncounted and due at once, and skips stale ones', async () => {
    const { message, claimToken } = await world().acceptClaimed();
    const { message: other, claimToken: otherToken } = await world().acceptClaimed();
    await world().store.messages.release({
      claims: [
        { key: message.key, projectId: PROJECT, claimToken },
        { key: other.key, projectId: PROJECT, claimToken: otherToken + 1_000 },
      ],
      nowMs: T0 + 50,
    });
    expect(await world().settle(message, claimToken, delivered(T0 + 50))).toMatchObject({
      kind: 'stale',
    });
    const result = await world().claim({}, T0 + 50);
    expect(result.claimed.map((claimed) => [claimed.message.key, claimed.retried])).toEqual([[message.key, 0]]);
    expect(await world().statesOf(message)).toEqual(['CREATED', 'ACTIVE', 'ACTIVE']);
  });

  it('releases all claims at a start, and nothing else (P7)', async () => {
    const { message } = await world().acceptClaimed();
    await world().accept({ notBeforeMs: T0 + 1_000 });
    const due = await world().accept();
    await world().claim({ limit: 1 });
    expect(await world().store.messages.releaseAll({ nowMs: T0 + 10 })).toBe(2);
    expect(await world().store.messages.releaseAll({ nowMs: T0 + 10 })).toBe(0);
    expect(keysOf(await world().claim({}, T0 + 10)).toSorted((a, b) => a - b)).toEqual([message.key, due.key]);
  });

  it('cancels a released message whose cancel was requested in flight', async () => {
    const { message, claimToken } = await world().acceptClaimed();
    const { message: other } = await world().acceptClaimed();
    await world().store.messages.cancelById({ projectId: PROJECT, ids: [message.id, other.id], nowMs: T0 + 1 });
    await world().store.messages.release({
      claims: [{ key: message.key, projectId: PROJECT, claimToken }],
      nowMs: T0 + 2,
    });
    expect(await world().store.messages.releaseAll({ nowMs: T0 + 3 })).toBe(1);
    for (const cancelled of [message, other]) {
      expect(await world().statesOf(cancelled)).toEqual(['CREATED', 'ACTIVE', 'CANCEL_REQUESTED', 'CANCELED']);
      expect(await world().find(cancelled)).toBeUndefined();
    }
    expect((await world().claim({}, T0 + 10)).claimed).toEqual([]);
  });
}
