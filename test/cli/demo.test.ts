import { expect, it } from 'vitest';
import { runWaypost } from '../support/waypost-process.ts';

it('shows how messages live, and ends with 0 when each ended as it should', async () => {
  const { code, stdout, stderr } = await runWaypost(['demo'], { NO_COLOR: '1' });
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  const states = (title: string): string[] =>
    [...stdout.matchAll(/^ {2}\S+ {2}(.{24}) {2}(\w+)/gm)].flatMap(([, name = '', state = '']) =>
      name.trim() === title ? [state] : [],
    );
  expect(states('at once')).toEqual(['CREATED', 'ACTIVE', 'DELIVERED']);
  expect(states('delayed by 2 s')).toEqual(['CREATED', 'ACTIVE', 'DELIVERED']);
  expect(states('batch, 3 of 3')).toEqual(['CREATED', 'ACTIVE', 'DELIVERED']);
  const failure = ['ACTIVE', 'ERROR', 'RETRY'];
  expect(states('fails twice')).toEqual(['CREATED', ...failure, ...failure, 'ACTIVE', 'DELIVERED']);
  expect(states('never succeeds')).toEqual(['CREATED', ...failure, 'ACTIVE', 'ERROR', 'FAILED']);
  expect(states('retried from the DLQ')).toEqual(['CREATED', 'ACTIVE', 'DELIVERED']);
  expect(states('the callback')).toEqual(['CREATED', 'ACTIVE', 'DELIVERED']);
  for (const title of [
    'by the schedule',
    'group, to mail',
    'group, to stock',
    'queue, 3 of 3',
    'two a second, 4 of 4',
  ]) {
    expect(states(title), title).toEqual(['CREATED', 'ACTIVE', 'DELIVERED']);
  }
  const line = [...stdout.matchAll(/(queue, \d of 3) +(ACTIVE|DELIVERED)/g)].map(
    ([, title, state]) => `${title} ${state}`,
  );
  expect(line).toEqual(
    [1, 2, 3].flatMap((number) => [`queue, ${number} of 3 ACTIVE`, `queue, ${number} of 3 DELIVERED`]),
  );
  expect(stdout).toContain('The callback said: status 200, answer "thank you".');
});
