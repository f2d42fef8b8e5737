import { expect, it } from 'vitest';
import { delivered, eachWorld, type OpenStore, OTHER_PROJECT, PROJECT, settlement, T0 } from './world.ts';

export function retentionConformance(open: OpenStore): void {
  const world = eachWorld(open);
  const drop = async (limits: { logs?: number; dead?: number; now?: number; rowsMax?: number }) => {
    let pieces = 0;
    let more = true;
    while (more) {
      pieces += 1;
      more = await world().store.dropExpired({
        logsBeforeMs: limits.logs ?? 0,
        deadBeforeMs: limits.dead ?? 0,
        keysUsedBeforeMs: 0,
        nowMs: limits.now ?? 0,
        rowsMax: limits.rowsMax ?? 1_000,
      });
    }
    return pieces;
  };
  const listAll = async (projectId = PROJECT) => {
    const page = await world().store.listLogs(projectId, {}, { count: 1_000, order: 'earliestFirst' });
    return page.items.map(({ atMs, state }) => [atMs - T0, state]);
  };

  it('drops log entries older than the limit, in every project, and no others', async () => {
    for (const projectId of [PROJECT, OTHER_PROJECT]) {
      const { message, claimToken } = await world().acceptClaimed({ projectId });
      await world().store.settle(settlement(message, claimToken, delivered(T0 + 10)), T0);
    }
    await drop({ logs: T0 + 10 });
    for (const projectId of [PROJECT, OTHER_PROJECT]) expect(await listAll(projectId)).toEqual([[10, 'DELIVERED']]);
    await drop({ logs: T0 + 11 });
    expect(await listAll()).toEqual([]);
  });

  it('works in pieces and says when there is no more', async () => {
    for (let index = 0; index < 25; index++) await world().accept({ createdAtMs: T0 + index });
    expect(await drop({ logs: T0 + 20, rowsMax: 5 })).toBe(5);
    expect(await listAll()).toHaveLength(5);
  });

  it('keeps what a waiting message needs when all of its log entries are dropped', async () => {
    const message = await world().accept({ notBeforeMs: T0 + 1_000_000 });
    await drop({ logs: T0 + 1_000 });
    expect(await world().find(message)).toEqual(message);
    const { claimed } = await world().claim({}, T0 + 1_000_000);
    expect(claimed.map((one) => one.message)).toEqual([message]);
    expect(await world().statesOf(message)).toEqual(['ACTIVE']);
  });

  it('keeps what a DLQ entry needs when all of its log entries are dropped, until it goes as well', async () => {
    const { message, dlqId } = await world().bury(T0);
    await drop({ logs: T0 + 1 });
    expect((await world().store.findDead(PROJECT, dlqId))?.message).toEqual(message);
    await drop({ logs: T0 + 1, dead: T0 });
    expect(await world().store.findDead(PROJECT, dlqId)).toBeDefined();
    await drop({ logs: T0 + 1, dead: T0 + 1 });
    expect(await world().store.findDead(PROJECT, dlqId)).toBeUndefined();
    // The key can be used again only when nothing at all is left of the message.
    expect(await world().accept({ key: message.key })).toBeDefined();
  });

  it('forgets what was published once nothing refers to it: after a delivery, a cancel, a deleted DLQ entry', async () => {
    const { message: sent, claimToken } = await world().acceptClaimed();
    await world().store.settle(settlement(sent, claimToken, delivered()), T0);
    const cancelled = await world().accept();
    await world().store.cancelById(PROJECT, [cancelled.id], T0);
    const early = await world().bury(T0);
    const late = await world().bury(T0);
    await world().store.deleteDead(PROJECT, [early.dlqId]);
    await drop({ logs: T0 + 1 });
    await world().store.deleteDead(PROJECT, [late.dlqId]);
    for (const { key } of [sent, cancelled, early.message, late.message]) {
      expect(await world().accept({ key })).toMatchObject({ key });
    }
  });

  it('drops deduplication ids whose window has ended', async () => {
    await world().accept({ deduplication: { hash: 'h', expiresAtMs: T0 + 10 } });
    await drop({ now: T0 + 9 });
    const second = world().message({ deduplication: { hash: 'h', expiresAtMs: T0 + 10 } });
    expect(await world().store.accept([second], T0 + 9)).toMatchObject([{ kind: 'duplicate' }]);
    await drop({ now: T0 + 10 });
    // With a clock set back, only the row itself could still tell.
    expect(await world().store.accept([second], T0 + 9)).toMatchObject([{ kind: 'accepted' }]);
  });
}
