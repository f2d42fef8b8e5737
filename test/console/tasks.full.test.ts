/** The console with large amounts of data, and during a restart of its server. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { STEPS } from './support/app.ts';
import { askerOf } from './support/populate.ts';
import { Scene } from './support/screens.ts';
import { browserObstacle, Visit } from './support/visit.ts';

const MESSAGES = 3_000;
const BATCH = 500;
const BODY_BYTES = 5 * 1024 * 1024;
/** Limit for a page with a list of any length, far below one element for each row. */
const ELEMENTS_MAX = 2_500;

const obstacle = browserObstacle();

describe.skipIf(obstacle !== undefined)(`the console${obstacle === undefined ? '' : ` (skipped: ${obstacle})`}`, () => {
  let scene: Scene;
  beforeAll(async () => {
    scene = await Scene.open();
  });
  afterAll(() => scene?.close());

  const elementsIn = ({ page }: Visit): Promise<number> => page.locator('*').count();

  it('opens a message with a body of 5 MiB', async () => {
    const body = JSON.stringify({ big: 'x'.repeat(BODY_BYTES) });
    const target = `/v2/publish/${scene.app.url}/ok`;
    const { messageId } = await askerOf(scene)<{ messageId: string }>('POST', target, { 'Upstash-Delay': '1h' }, body);
    const visit = await scene.visit();
    await visit.goTo(`/messages/${messageId}`, 'Cancel message');
    await visit.page.getByText('"big"').first().waitFor();
    await visit.page.getByRole('button', { name: 'hex' }).first().click();
    await visit.page.getByText('00000000').first().waitFor();
    expect(await visit.problems()).toEqual([]);
    await visit.close();
  });

  it('scrolls through three thousand messages, and renders only the visible ones', async () => {
    const ask = askerOf(scene);
    const items = Array.from({ length: BATCH }, (_, index) => ({
      destination: `${scene.app.url}/ok?row=${index}`,
      headers: { 'Upstash-Delay': '1h' },
    }));
    for (let made = 0; made < MESSAGES; made += BATCH) await ask('POST', '/v2/batch', {}, JSON.stringify(items));
    const visit = await scene.visit();
    const { page } = visit;
    await visit.goTo('/messages', 'row=');
    const list = page.getByRole('table', { name: 'Messages' });
    await page.getByRole('row').nth(2).hover();
    await eventually(
      () => 'all rows',
      async () => {
        await page.mouse.wheel(0, 1_000_000);
        return Number(await list.getAttribute('aria-rowcount')) > MESSAGES;
      },
    );
    expect(await elementsIn(visit)).toBeLessThan(ELEMENTS_MAX);
    await visit.close();
  });

  it(`shows a run of ${STEPS} steps, and renders only the visible ones`, async () => {
    const target = `/v2/trigger/${scene.app.url}/long`;
    const ask = askerOf(scene);
    const { workflowRunId } = await ask<{ workflowRunId: string }>('POST', target);
    await eventually('the end of the run', async () => {
      const { runs } = await ask<{ runs: { workflowState: string }[] }>(
        'GET',
        `/v2/workflows/logs?workflowRunId=${workflowRunId}&trimBody=0`,
      );
      return runs[0]?.workflowState === 'RUN_SUCCESS';
    });
    const visit = await scene.visit();
    await visit.goTo(`/runs/${workflowRunId}`, 'step 0');
    const timeline = visit.page.getByRole('region', { name: 'Timeline of' });
    await timeline.focus();
    await timeline.hover();
    await visit.page.mouse.wheel(0, 1_000_000);
    await visit.page.getByText(`step ${STEPS - 1}`, { exact: true }).waitFor();
    expect(await elementsIn(visit)).toBeLessThan(ELEMENTS_MAX);
    expect(await visit.problems()).toEqual([]);
    await visit.close();
  });

  it('reconnects by itself after a restart of its server', async () => {
    const server = scene.servers.start(['dev']);
    const url = await server.url();
    const { token } = (await (await fetch(`${url}/console/environment.json`)).json()) as { token: string };
    const visit = await Visit.open(scene.browser, { url });
    await visit.goTo('/messages', 'No messages yet');
    await visit.page.getByRole('button', { name: 'Live' }).getByText('on').waitFor();
    server.signal('SIGTERM');
    await server.waitForExit();
    const { port } = new URL(url);
    const again = scene.servers.run([
      ...['dev', '--port', port, '--data-dir', scene.servers.dataDir, '--log-format', 'json'],
    ]);
    await again.url();
    await askerOf({ url, token })('POST', `/v2/publish/${scene.app.url}/after-the-restart`);
    await visit.page.getByRole('row').filter({ hasText: '/after-the-restart' }).getByText('delivered').waitFor();
    expect(visit.faults).toEqual([]);
    await visit.close();
  });
});
