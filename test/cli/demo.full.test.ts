import { expect, it } from 'vitest';
import type { Json } from '../api/support/world.ts';
import { eventually } from '../support/eventually.ts';
import { WaypostProcess } from '../support/waypost-process.ts';

it('leaves a server full of life with --keep, until it is told to end', async () => {
  const demo = new WaypostProcess(['demo', '--keep'], { NO_COLOR: '1' });
  try {
    const [, url = ''] = await eventually(
      () => `the address of the console: ${demo.stdout}${demo.stderr}`,
      () => /^Console: (http:\/\/127\.0\.0\.1:\d+)\/console$/m.exec(demo.stdout),
    );
    const { mode, token } = (await (await fetch(`${url}/console/environment.json`)).json()) as Record<string, string>;
    expect(mode).toBe('dev');
    const read = async (path: string): Promise<Json> => {
      const response = await fetch(`${url}${path}`, { headers: { authorization: `Bearer ${token}` } });
      return response.json();
    };
    const queues = (await read('/v2/queues')) as { name: string; paused: boolean; lag: number }[];
    expect(queues.find(({ name }) => name === 'invoices')).toMatchObject({ paused: true, lag: 3 });
    expect(await read('/v2/flowControl/the-slow-partner')).toMatchObject({ isPaused: true, waitListSize: 3 });
    expect(await read('/v2/schedules')).toHaveLength(1);
    // What failed for good, a message and a run, is there to be repaired.
    await eventually('the message that failed', async () => (await read('/v2/dlq')).messages.length > 0);
    expect((await read('/v2/workflows/dlq')).messages).toHaveLength(1);
    // And it goes on.
    const greetings = async (): Promise<number> =>
      (await read('/v2/logs?state=DELIVERED&label=greeting')).events.length;
    const before = await greetings();
    await eventually('another greeting', async () => (await greetings()) > before);
    demo.signal('SIGINT');
    expect(await demo.waitForExit()).toMatchObject({ code: 0, stderr: '' });
  } finally {
    await demo.kill();
  }
});
