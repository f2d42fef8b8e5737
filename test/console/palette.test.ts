import { describe, expect, it } from 'vitest';
import { paletteTargetsFor } from '../../console/src/shell/palette-targets.ts';

const SCREENS = [
  ['/overview', 'Overview'],
  ['/queues', 'Queues'],
  ['/messages', 'Messages'],
] as const;

function pathsFor(typed: string): string[] {
  return paletteTargetsFor(typed, SCREENS, { queues: ['invoices', 'old-queues'], schedules: ['morning report'] }).map(
    ({ to }) => to,
  );
}

describe('the command palette', () => {
  it('offers every screen before anything is typed', () => {
    expect(pathsFor('').slice(0, 3)).toEqual(['/overview', '/queues', '/messages']);
  });

  it('offers names that start with the text before those that contain it', () => {
    expect(pathsFor('queues').slice(0, 2)).toEqual(['/queues', '/queues']);
    expect(paletteTargetsFor('ues', SCREENS, { queues: ['uesque'] })[0]).toMatchObject({ name: 'uesque' });
  });

  it('offers the message or the run with the id', () => {
    expect(pathsFor('msg_26/a')[0]).toBe('/messages/msg_26%2Fa');
    expect(pathsFor(' wfr_order-42 ')[0]).toBe('/runs/wfr_order-42');
  });

  it('opens the schedule with the name', () => {
    expect(pathsFor('morning')[0]).toBe('/schedules?open=morning%20report');
  });

  it('offers messages by URL, label or host if no name matches', () => {
    expect(pathsFor('https://app.example/hook?x=1')).toEqual([
      '/messages?url=https%3A%2F%2Fapp.example%2Fhook%3Fx%3D1',
    ]);
    expect(pathsFor('shop.example')).toEqual(['/messages?label=shop.example', '/messages?host=shop.example']);
  });
});
