import { expect, it } from 'vitest';
import { delivered, eachWorld, type OpenStore, OTHER_PROJECT, PROJECT, T0 } from './world.ts';

const DAY = 86_400_000;

export function replaysConformance(open: OpenStore): void {
  const world = eachWorld(open);
  const find = (id: string, projectId = PROJECT) => world().store.messages.findStored({ projectId, id });
  const list = (id: string, projectId = PROJECT) => world().store.messages.listReplays({ projectId, id });

  it('finds a message until its log expires, by its whole id and only in its project', async () => {
    const { message, claimToken } = await world().acceptClaimed();
    await world().settle(message, claimToken, delivered());
    expect(await find(message.id)).toEqual(message);
    expect(await find(message.id, OTHER_PROJECT)).toBeUndefined();
    for (const id of [`${message.id.slice(0, -1)}Z`, 'msg_unknown', '']) expect(await find(id)).toBeUndefined();
    const expired = {
      logsBeforeMs: T0 + DAY,
      deadBeforeMs: 0,
      minutesBeforeMs: 0,
      keysUsedBeforeMs: 0,
      rowsMax: 1_000,
    };
    while (await world().store.retention.dropExpired({ ...expired, nowMs: T0 + 3 * DAY }));
    expect(await find(message.id)).toBeUndefined();
  });

  it('lists the latest 100 replays of a message, newest first', async () => {
    const { id } = await world().accept();
    const replays: string[] = [];
    for (let nth = 0; nth < 101; nth += 1) replays.push((await world().accept({ settings: { replayOf: id } })).id);
    expect(await list(id)).toEqual(replays.toReversed().slice(0, 100));
    expect([await list(replays[0] ?? ''), await list(id, OTHER_PROJECT), await list('msg_unknown')]).toEqual([
      [],
      [],
      [],
    ]);
  });
}
