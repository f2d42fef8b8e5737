import { expect, it } from 'vitest';
import { bytes, delivered, eachWorld, type OpenStore, OTHER_PROJECT, PROJECT, T0 } from './world.ts';

const WINDOW_MS = 600_000;

export function acceptConformance(open: OpenStore): void {
  const world = eachWorld(open);
  const reservation = (hash: string, fromMs = T0) => ({ hash, expiresAtMs: fromMs + WINDOW_MS });

  it('returns a message exactly as it was accepted', async () => {
    const header = Object.assign(Object.create(null), { 'Content-Type': ['a', 'b'] }) as Record<string, string[]>;
    Object.defineProperty(header, '__proto__', { value: ['only a name'], enumerable: true });
    const message = await world().accept({
      url: 'https://example.com:8443/a%20b?q=ü#f',
      method: 'PUT',
      header,
      body: new Uint8Array([0, 255, 128, 10]),
      notBeforeMs: T0 + 5_000,
      callerIp: '::1',
      settings: {
        labels: ['a', 'b'],
        redact: { body: true, headers: 'all' },
        flowControl: { key: 'k', rate: 1, periodS: 2 },
        callback: { url: 'https://c.example', method: 'POST', header, maxRetries: 0 },
      },
    });
    const found = await world().find(message);
    expect(found).toEqual(message);
    for (const map of [found?.header, found?.settings.callback?.header]) {
      expect(Object.getPrototypeOf(map)).toBeNull();
      expect(Object.keys(map ?? {})).toEqual(['Content-Type', '__proto__']);
    }
  });

  it('keeps only the bytes of a body that is a view of a larger buffer', async () => {
    const message = await world().accept({ body: bytes('before BODY after').subarray(7, 11) });
    expect((await world().find(message))?.body).toEqual(bytes('BODY'));
  });

  it('finds nothing under an id that differs, in another project, or that no server made', async () => {
    const message = await world().accept();
    const other = `${message.id.slice(0, -1)}${message.id.endsWith('2') ? '3' : '2'}`;
    expect(await world().find({ ...message, id: other })).toBeUndefined();
    expect(await world().find({ ...message, projectId: OTHER_PROJECT })).toBeUndefined();
    expect(await world().find({ ...message, id: 'msg_nothing' })).toBeUndefined();
  });

  it('writes the log entries of a message with it, with the planned time of a delayed one (P3)', async () => {
    const message = await world().accept({ notBeforeMs: T0 + 9_000 });
    expect(await world().logsOf(message)).toEqual([
      { atMs: T0, state: 'CREATED', message, detail: { nextDeliveryTimeMs: T0 + 9_000 } },
    ]);
    const past = await world().accept({ notBeforeMs: T0 - 1 });
    expect(await world().logsOf(past)).toEqual([{ atMs: T0, state: 'CREATED', message: past }]);
  });

  it('saves no message of a command when one of its messages cannot be saved', async () => {
    const taken = await world().accept();
    const fresh = world().message();
    await expect(world().save([fresh, world().message({ key: taken.key })])).rejects.toThrow();
    expect(await world().find(fresh.message)).toBeUndefined();
    expect(await world().statesOf(fresh.message)).toEqual([]);
  });

  it('refuses a bad command without affecting the others of its batch', async () => {
    const taken = await world().accept();
    const { message: running, claimToken } = await world().acceptClaimed();
    const good = [world().message(), world().message()];
    const [first, bad, second, settled] = await Promise.allSettled([
      world().save([good[0] as (typeof good)[0]]),
      world().save([world().message({ key: taken.key })]),
      world().save([good[1] as (typeof good)[0]]),
      world().settle(running, claimToken, delivered()),
    ]);
    expect([first?.status, bad?.status, second?.status]).toEqual(['fulfilled', 'rejected', 'fulfilled']);
    expect(settled).toEqual({ status: 'fulfilled', value: { kind: 'saved' } });
    for (const { message } of good) {
      expect(await world().find(message)).toEqual(message);
      expect(await world().statesOf(message)).toEqual(['CREATED']);
    }
    expect(await world().statesOf(running)).toEqual(['CREATED', 'ACTIVE', 'DELIVERED']);
  });

  it('returns the first message for a duplicate by deduplication id, and saves nothing', async () => {
    const first = await world().accept({ deduplication: reservation('h') });
    const second = world().message({ deduplication: reservation('h') });
    expect(await world().save([second], T0 + 1)).toEqual([{ kind: 'duplicate', messageId: first.id }]);
    expect(await world().find(second.message)).toBeUndefined();
    expect(await world().statesOf(second.message)).toEqual([]);
  });

  it('returns results in order, and deduplicates inside one command too (contract M 11.7)', async () => {
    const [a, b, c] = [
      world().message({ deduplication: reservation('x') }),
      world().message({ deduplication: reservation('x') }),
      world().message(),
    ];
    expect(await world().save([a, b, c])).toEqual([
      { kind: 'accepted', state: 'due' },
      { kind: 'duplicate', messageId: a.message.id },
      { kind: 'accepted', state: 'due' },
    ]);
  });

  it('saves exactly one of a hundred concurrent publishes, and returns its id to all of them', async () => {
    const messages = Array.from({ length: 100 }, () => world().message({ deduplication: reservation('race') }));
    const results = (await Promise.all(messages.map((message) => world().save([message])))).flat();
    const winner = messages[results.findIndex(({ kind }) => kind === 'accepted')];
    expect(results.filter(({ kind }) => kind === 'accepted')).toHaveLength(1);
    for (const result of results) {
      if (result.kind === 'duplicate') expect(result.messageId).toBe(winner?.message.id);
    }
  });

  it('keeps a deduplication id after its message is finished, until the window ends, and not longer', async () => {
    const { message, claimToken } = await world().acceptClaimed({ deduplication: reservation('h') });
    await world().settle(message, claimToken, delivered());
    const late = world().message({ deduplication: reservation('h', T0 + WINDOW_MS) });
    expect(await world().save([late], T0 + WINDOW_MS - 1)).toEqual([{ kind: 'duplicate', messageId: message.id }]);
    expect(await world().save([late], T0 + WINDOW_MS)).toMatchObject([{ kind: 'accepted' }]);
    const later = world().message({ deduplication: reservation('h', T0 + WINDOW_MS) });
    expect(await world().save([later], T0 + WINDOW_MS + 1)).toEqual([
      { kind: 'duplicate', messageId: late.message.id },
    ]);
  });

  it('separates the deduplication ids of projects', async () => {
    await world().accept({ deduplication: reservation('h') });
    const theirs = world().message({ projectId: OTHER_PROJECT, deduplication: reservation('h') });
    expect(await world().save([theirs])).toMatchObject([{ kind: 'accepted' }]);
  });

  it('does not keep the deduplication id of a command that was refused', async () => {
    const taken = await world().accept();
    const bad = [world().message({ deduplication: reservation('h') }), world().message({ key: taken.key })];
    await expect(world().save(bad)).rejects.toThrow();
    const good = world().message({ deduplication: reservation('h') });
    expect(await world().save([good])).toMatchObject([{ kind: 'accepted' }]);
  });

  it('never returns a number twice', async () => {
    const starts = await Promise.all(
      Array.from({ length: 20 }, () => world().store.messages.reserveNumbers({ count: 10 })),
    );
    const numbers = starts.flatMap((start) => Array.from({ length: 10 }, (_, index) => start + index));
    expect(new Set(numbers).size).toBe(200);
    expect(numbers.every(Number.isSafeInteger)).toBe(true);
  });

  it('returns the state of a message', async () => {
    const waiting = await world().accept({ notBeforeMs: T0 + 1 });
    const inBacklog = await world().accept({ state: { kind: 'origin', dueAtMs: T0 } });
    const { message: claimed } = await world().acceptClaimed();
    await world().store.messages.cancelById({ projectId: PROJECT, ids: [claimed.id], nowMs: T0 });
    const states = await Promise.all(
      [waiting, inBacklog, claimed].map(async ({ id }) => {
        const live = await world().store.messages.findLive({ projectId: PROJECT, id, nowMs: T0 });
        return live && { ...live.state, cancelRequested: live.cancelRequested };
      }),
    );
    expect(states).toEqual([
      { kind: 'due', dueAtMs: T0 + 1, cancelRequested: false },
      { kind: 'origin', dueAtMs: T0, cancelRequested: false },
      { kind: 'claimed', claimedAtMs: T0, cancelRequested: true },
    ]);
    expect(
      await world().store.messages.findLive({ projectId: OTHER_PROJECT, id: waiting.id, nowMs: T0 }),
    ).toBeUndefined();
  });
}
