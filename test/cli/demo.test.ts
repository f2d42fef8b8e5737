import { expect, it } from 'vitest';
import { runWaypost } from '../support/waypost-process.ts';

it('shows the states of messages and workflow runs, and exits with 0 when each ended as expected', async () => {
  const { code, stdout, stderr } = await runWaypost(['demo'], { NO_COLOR: '1' });
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  const states = (title: string): string[] =>
    [...stdout.matchAll(/^ {2}\S+ {2}(.{24}) {2}(\w+)/gm)].flatMap(([, name = '', state = '']) =>
      name.trim() === title ? [state] : [],
    );
  expect(states('immediate')).toEqual(['CREATED', 'ACTIVE', 'DELIVERED']);
  expect(states('delayed by 2 s')).toEqual(['CREATED', 'ACTIVE', 'DELIVERED']);
  expect(states('batch, 3 of 3')).toEqual(['CREATED', 'ACTIVE', 'DELIVERED']);
  const failure = ['ACTIVE', 'ERROR', 'RETRY'];
  expect(states('fails twice')).toEqual(['CREATED', ...failure, ...failure, 'ACTIVE', 'DELIVERED']);
  expect(states('never succeeds')).toEqual(['CREATED', ...failure, 'ACTIVE', 'ERROR', 'FAILED']);
  expect(states('retried from the DLQ')).toEqual(['CREATED', 'ACTIVE', 'DELIVERED']);
  expect(states('the callback')).toEqual(['CREATED', 'ACTIVE', 'DELIVERED']);
  for (const title of [
    'from the schedule',
    'group, to mail',
    'group, to stock',
    'queue, 3 of 3',
    'two per second, 4 of 4',
  ]) {
    expect(states(title), title).toEqual(['CREATED', 'ACTIVE', 'DELIVERED']);
  }
  const line = [...stdout.matchAll(/(queue, \d of 3) +(ACTIVE|DELIVERED)/g)].map(
    ([, title, state]) => `${title} ${state}`,
  );
  expect(line).toEqual(
    [1, 2, 3].flatMap((number) => [`queue, ${number} of 3 ACTIVE`, `queue, ${number} of 3 DELIVERED`]),
  );
  expect(stdout).toContain('The callback reported: status 200, response "thank you".');
  const [order, letter, failed, resumed] = timelines(stdout);
  expect(order).toEqual([
    'Initial SUCCESS',
    'Run SUCCESS',
    '| Call SUCCESS',
    '| Wait SUCCESS',
    '| Invoke SUCCESS',
    'SleepFor SUCCESS',
    'CreateWebhook SUCCESS',
    'Run SUCCESS',
    'WaitForWebhook SUCCESS',
    'SleepUntil SUCCESS',
    'Notify SUCCESS',
  ]);
  expect(letter).toEqual(['Initial SUCCESS', 'Wait SUCCESS', 'Run SUCCESS']);
  expect(failed).toEqual(['Initial SUCCESS', 'Run SUCCESS', 'FAILED']);
  expect(resumed).toEqual(['Initial SUCCESS', 'Run SUCCESS', 'Run SUCCESS']);
});

/** Of each run the kinds of its steps and what they came to; a bar before those side by side. */
function timelines(stdout: string): string[][] {
  const runs = stdout.split(/^ {2}\S {2}wfr_/m).slice(1);
  return runs.map((run) =>
    [...run.matchAll(/^ {2}(│| ) {2}\S {2}.*? {2,}(?:(\w+) +)?(SUCCESS|FAILED)\b/gm)].map(([, bar, type, state]) =>
      [bar === '│' ? '|' : undefined, type, state].filter((word) => word !== undefined).join(' '),
    ),
  );
}
