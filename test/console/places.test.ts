import { describe, expect, it } from 'vitest';
import { paletteTargetsFor } from '../../console/src/shell/palette-targets.ts';

const SCREENS = [
  ['/overview', 'Overview'],
  ['/queues', 'Queues'],
  ['/messages', 'Messages'],
] as const;

function ways(typed: string): string[] {
  return paletteTargetsFor(typed, SCREENS, { queues: ['invoices', 'old-queues'], schedules: ['morning report'] }).map(
    ({ to }) => to,
  );
}

describe('the way to what was typed', () => {
  it('leads to every screen before anything is typed', () => {
    expect(ways('').slice(0, 3)).toEqual(['/overview', '/queues', '/messages']);
  });

  it('leads to what begins with it before what contains it', () => {
    expect(ways('queues').slice(0, 2)).toEqual(['/queues', '/queues']);
    expect(paletteTargetsFor('ues', SCREENS, { queues: ['uesque'] })[0]).toMatchObject({ name: 'uesque' });
  });

  it('leads to the message or the run with the id', () => {
    expect(ways('msg_26/a')[0]).toBe('/messages/msg_26%2Fa');
    expect(ways(' wfr_order-42 ')[0]).toBe('/runs/wfr_order-42');
  });

  it('opens the schedule with the name', () => {
    expect(ways('morning')[0]).toBe('/schedules?open=morning%20report');
  });

  it('leads to messages by URL, label or host when it knows nothing better', () => {
    expect(ways('https://app.example/hook?x=1')).toEqual(['/messages?url=https%3A%2F%2Fapp.example%2Fhook%3Fx%3D1']);
    expect(ways('shop.example')).toEqual(['/messages?label=shop.example', '/messages?host=shop.example']);
  });
});
