/**
 * What each screen is for, done as its user does it: in a real browser, with one server. What every screen keeps to:
 * screens.full.test.ts. Longer tasks, and those of large amounts: tasks.full.test.ts.
 */
import type { Locator, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { RunningServer } from '../../src/server/server.ts';
import { eventually } from '../support/eventually.ts';
import { startInProcess } from '../support/server-in-process.ts';
import { giveCommand } from '../support/waypost-command.ts';
import { LONG_NAME } from './support/hostile.ts';
import { askerOf } from './support/populate.ts';
import { Scene } from './support/screens.ts';
import { browserObstacle, SIZES, Visit } from './support/visit.ts';

const obstacle = browserObstacle();
const reason = obstacle === undefined ? '' : ` (skipped: ${obstacle})`;

let scene: Scene;
let visit: Visit;
beforeAll(async () => {
  if (obstacle === undefined) scene = await Scene.open();
});
afterAll(() => scene?.close());

describe.skipIf(obstacle !== undefined)(`in the console${reason}`, () => {
  let page: Page;
  beforeAll(async () => {
    visit = await scene.visit();
    page = visit.page;
  });
  afterAll(async () => {
    expect(visit.faults).toEqual([]);
    await visit.close();
  });

  it('an address without a screen says so, and leads to the overview', async () => {
    await visit.goTo('/message', 'Page not found');
    await page.getByRole('main').getByRole('link', { name: 'Overview' }).click();
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
  });

  it('a screen that cannot be loaded says so, leaves the rest of the page usable, and loads once the server is back', async () => {
    const viewer = await scene.visit();
    await viewer.goTo('/overview');
    const requests = /\/(console\/assets|healthz)/;
    await viewer.page.route(requests, (route) => route.abort());
    await viewer.page.getByRole('link', { name: 'Queues', exact: true }).first().click();
    await viewer.page.getByText('This screen could not be loaded').waitFor();
    await viewer.page.getByRole('button', { name: 'Try again' }).click();
    await viewer.page.getByText('The server cannot be reached.').waitFor();
    await viewer.page.getByRole('link', { name: 'Overview' }).first().click();
    await viewer.page.getByRole('heading', { name: 'Overview' }).waitFor();
    await viewer.page.getByRole('link', { name: 'Queues', exact: true }).first().click();
    await viewer.page.unroute(requests);
    await viewer.page.getByRole('button', { name: 'Try again' }).click();
    await viewer.page.getByRole('row', { name: 'invoices' }).waitFor();
    await viewer.close();
  });

  it('two clicks lead from the overview to the reason why a message failed', async () => {
    await visit.goTo('/overview');
    await page.getByRole('row', { name: 'status 500' }).getByRole('link').first().click();
    await page
      .getByRole('table')
      .getByRole('link', { name: `${scene.app.url}/broken` })
      .first()
      .click();
    await page.getByText('the endpoint responded with status 500').first().waitFor();
    // The server says it with the time of a machine.
    expect(await page.getByRole('region', { name: 'Explanation' }).textContent()).not.toMatch(/\dT\d/);
  });

  it('a failed message is sent again and arrives', async () => {
    scene.app.isRepaired = true;
    await visit.goTo(`/messages/${scene.made.failed}`);
    await page.getByRole('button', { name: 'Retry now' }).click();
    await page.getByRole('region', { name: 'Explanation' }).getByText('delivered', { exact: true }).waitFor();
    expect(new URL(page.url()).pathname).not.toContain(scene.made.failed);
    await page.getByText('This is a copy of').waitFor();
    await visit.goTo('/dlq');
    expect(await page.getByRole('link', { name: `${scene.app.url}/broken` }).count()).toBe(1);
    scene.app.isRepaired = false;
  });

  it('a keyboard alone resumes a queue and pauses it again', async () => {
    await visit.goTo('/queues', 'invoices');
    for (const [name, then] of [
      ['Resume', 'Pause'],
      ['Pause', 'Resume'],
    ] as const) {
      await reachByTab(page, page.getByRole('row', { name: 'invoices' }).getByRole('button', { name, exact: true }));
      await page.keyboard.press('Enter');
      await page.getByRole('row', { name: 'invoices' }).getByRole('button', { name: then, exact: true }).waitFor();
    }
  });

  it('a question holds the focus of a keyboard, begins with what changes nothing, and gives the focus back', async () => {
    await visit.goTo('/queues', LONG_NAME);
    const asks = page.getByRole('row', { name: LONG_NAME }).getByRole('button', { name: 'Delete' });
    const dialog = page.getByRole('dialog', { name: 'Delete' });
    await reachByTab(page, asks);
    await page.keyboard.press('Enter');
    await dialog.getByText(`Deletes the queue ${LONG_NAME}`).waitFor();
    const held = [];
    for (let presses = 0; presses < 4; presses += 1) {
      held.push(await dialog.locator(':focus').allTextContents());
      await page.keyboard.press('Tab');
    }
    // Between the last and the first, the focus is the browser's own.
    expect(held).toEqual([['Close'], ['Delete'], [], ['Close']]);
    expect(await visit.problems()).toEqual([]);
    await page.keyboard.press('Escape');
    await dialog.waitFor({ state: 'detached' });
    expect(await asks.and(page.locator(':focus')).count()).toBe(1);
  });

  it('a schedule shows its next ten times in both zones, and runs now', async () => {
    await visit.goTo('/schedules', 'morning-report');
    await page.getByRole('row', { name: 'morning-report' }).getByRole('button', { name: 'Open' }).click();
    const dialog = page.getByRole('dialog', { name: 'morning-report' });
    await dialog.getByRole('columnheader', { name: 'Europe/Berlin' }).waitFor();
    const times = dialog.getByRole('row').filter({ hasText: '7:30:00' });
    expect(await times.count()).toBe(10);
    const { responded } = changed(page, '/v2/publish/');
    await dialog.getByRole('button', { name: 'Run now' }).click();
    const { messageId } = await responded;
    await visit.goTo(`/messages/${messageId}`);
    await page.getByRole('region', { name: 'Explanation' }).getByText('delivered', { exact: true }).waitFor();
  });

  it('what is sent from a form arrives in the list of messages', async () => {
    await visit.goTo('/send');
    await page.getByLabel('Destination (URL').fill(`${scene.app.url}/from-the-form`);
    await page.getByRole('button', { name: 'Send', exact: true }).click();
    await page.getByText('messageId').first().waitFor();
    await page.getByRole('link', { name: 'Messages', exact: true }).click();
    const row = page.getByRole('row').filter({ hasText: '/from-the-form' });
    await row.getByText('delivered').waitFor();
  });

  it('an event that a run waits for is found and sent', async () => {
    await visit.goTo('/overview');
    await page.keyboard.press('Control+k');
    await page.keyboard.type('runs w');
    await page.keyboard.press('Enter');
    await page.getByRole('button', { name: 'Send paid-42' }).click();
    const dialog = page.getByRole('dialog', { name: 'Send an event' });
    await dialog.getByRole('button', { name: 'Send', exact: true }).click();
    await dialog.getByText('1 run continues').waitFor();
    await page.getByText('1 waiting run', { exact: true }).waitFor();
  });

  it('a run whose code has changed is shown with both sides, and tried again once the code is back', async () => {
    const ask = askerOf(scene);
    const headers = { 'Upstash-Retries': '0' };
    const target = `/v2/trigger/${scene.app.url}/flows/bill`;
    const { workflowRunId } = await ask<{ workflowRunId: string }>('POST', target, headers, '{}');
    await eventually('a run that waits for the signature', async () =>
      JSON.stringify(await ask('GET', '/v2/waypost/waiters')).includes('signed-42'),
    );
    scene.app.isBillRenamed = true;
    await ask('POST', '/v2/notify/signed-42', {}, '{}');
    await visit.goTo(`/runs/${workflowRunId}`);
    await page.getByText('parked', { exact: true }).first().waitFor();
    await page
      .getByRole('region', { name: 'Explanation' })
      .getByText("has 'write an invoice' (Run) there now")
      .waitFor();
    scene.app.isBillRenamed = false;
    const again = page.getByRole('button', { name: 'Retry now' });
    await again.click();
    await again.waitFor({ state: 'detached' });
    await page.getByText('The run returned nothing.').waitFor();
  });

  it('a failed run is found, and resumed once its cause is repaired', async () => {
    await visit.goTo('/overview');
    const causes = page.getByRole('table', { name: 'Failures by cause' });
    await causes.getByRole('link', { name: '1 run', exact: true }).click();
    await page.getByRole('heading', { name: '1 failed run' }).waitFor();
    await page.getByRole('link', { name: scene.made.failedRun }).click();
    await page.getByText('the bank is closed').first().waitFor();
    scene.app.isBankOpen = true;
    await page.getByRole('button', { name: 'Resume' }).click();
    await page.getByText('success', { exact: true }).first().waitFor();
    await page.getByRole('link', { name: scene.made.failedRun }).waitFor();
  });
});

describe.skipIf(obstacle !== undefined)(`the overview of a new server${reason}`, () => {
  let server: RunningServer;
  beforeAll(async () => {
    server = await startInProcess();
  });
  afterAll(() => server?.stop(0));

  it.each(['wide', 'narrow'] as const)('sends the first message without scrolling, in a %s window', async (size) => {
    const newcomer = await Visit.open(scene.browser, { url: server.url, size });
    await newcomer.goTo('/overview', 'No attempt finished');
    const send = newcomer.page.getByRole('button', { name: 'Send it now' });
    const { y = Infinity, height = 0 } = (await send.boundingBox()) ?? {};
    expect(y + height).toBeLessThan(SIZES[size].height);
    expect(await newcomer.problems()).toEqual([]);
    await newcomer.close();
  });

  it('no longer speaks of the first message once one was delivered', async () => {
    const ask = askerOf({ url: server.url, token: scene.token });
    const newcomer = await Visit.open(scene.browser, { url: server.url });
    await newcomer.goTo('/overview', 'No messages yet');
    await ask('POST', `/v2/publish/${scene.app.url}/ok`);
    await eventually('the delivery', async () =>
      JSON.stringify(await ask('GET', '/v2/logs?count=1')).includes('"DELIVERED"'),
    );
    await newcomer.page.getByText('No messages yet').waitFor({ state: 'detached' });
    await newcomer.close();
  });
});

describe.skipIf(obstacle !== undefined)(`the page of the interface${reason}`, () => {
  it('finds an operation, writes its request, asks, and sends it', async () => {
    const viewer = await scene.visit({ size: 'narrow' });
    const { page } = viewer;
    await page.goto(`${scene.url}/docs`);
    await page.getByLabel('Search').fill('pauses flow-control key');
    await page.getByText('1 found').waitFor();
    await page.keyboard.press('Enter');
    const operation = page.locator('details[open]');
    await operation.getByLabel('flowControlKey').fill('from the page');
    await operation.getByText('"$QSTASH_URL"/v2/flowControl/from%20the%20page/pause').waitFor();
    await operation.getByRole('button', { name: 'Send' }).click();
    const question = page.getByRole('dialog', { name: 'Send the request' });
    await question.getByText(`POST ${scene.url}/v2/flowControl/from%20the%20page/pause`).waitFor();
    await question.getByRole('button', { name: 'Send' }).click();
    // "from the page" is no name of a key: the server says so, and the page shows it.
    await operation.getByLabel('Response').getByText('HTTP 400').waitFor();
    await operation.getByLabel('flowControlKey').fill('from-the-page');
    await operation.getByRole('button', { name: 'Send' }).click();
    await question.getByRole('button', { name: 'Send' }).click();
    await operation.getByLabel('Response').getByText('HTTP 200').waitFor();
    expect(viewer.faults).toEqual([]);
    await viewer.close();
  });
});

describe.skipIf(obstacle !== undefined)(`the console of a server that asks for a token${reason}`, () => {
  let url: string;
  let full: string;
  beforeAll(async () => {
    const { stdout } = await giveCommand(['init', '--data-dir', scene.servers.dataDir]);
    full = /^QSTASH_TOKEN=(.*)$/m.exec(stdout)?.[1] ?? '';
    url = await scene.servers.start(['serve']).url();
  });

  async function make(scope: string): Promise<string> {
    const headers = { authorization: `Bearer ${full}`, 'Content-Type': 'application/json' };
    const answer = await fetch(`${url}/v2/waypost/tokens`, {
      method: 'POST',
      headers,
      body: JSON.stringify({ scope }),
    });
    return ((await answer.json()) as { token: string }).token;
  }

  it('says that a token is wrong, and lets in who has one', async () => {
    const { page, ...others } = await Visit.open(scene.browser, { url });
    await page.goto(`${url}/console/queues`);
    for (const token of ['wrong', full]) {
      await page.getByLabel('Project token').fill(token);
      await page.getByRole('button', { name: 'Open' }).click();
      if (token === 'wrong') await page.getByRole('alert').getByText('rejected this token').waitFor();
    }
    await page.getByText('No queues yet').waitFor();
    expect(page.url()).toBe(`${url}/console/queues`);
    expect(others.faults).toEqual([]);
    await page.context().close();
  });

  it('tells a token that may only read why it may not change', async () => {
    const reader = await Visit.open(scene.browser, { url, token: await make('read-only') });
    await reader.goTo('/settings', 'A full token is required');
    await reader.page.getByText('This token is read-only. Changes need a full token.').waitFor();
    await reader.goTo('/send');
    await reader.page.getByLabel('Destination (URL').fill('https://example.com');
    await reader.page.getByRole('button', { name: 'Send', exact: true }).click();
    await reader.page.getByRole('alert').getByText('read-only').waitFor();
    await reader.close();
  });

  it('shows a token that may only publish that it may', async () => {
    const publisher = await Visit.open(scene.browser, { url, token: await make('publish-only') });
    await publisher.goTo('/send');
    await publisher.page.getByText('This token can only publish.').waitFor();
    await publisher.page.getByLabel('Destination (URL').fill('https://93.184.216.34/');
    await publisher.page.getByLabel('Delay').fill('1h');
    await publisher.page.getByRole('button', { name: 'Send', exact: true }).click();
    await publisher.page.getByText('messageId').first().waitFor();
    await publisher.goTo('/queues');
    await publisher.page.getByRole('alert').first().waitFor();
    await publisher.close();
  });

  it('makes a token, shows its secret once, and revokes it', async () => {
    const owner = await Visit.open(scene.browser, { url, token: full });
    const { page } = owner;
    await owner.goTo('/settings', 'Tokens of this project');
    await page.getByLabel('New token name').fill('مرحبا 🚀');
    await page.getByRole('button', { name: 'Create' }).click();
    const secret = (await page.getByRole('dialog').getByRole('code').textContent()) ?? '';
    expect(await statusOf(url, secret)).toBe(200);
    await page.getByRole('button', { name: 'Close' }).click();
    const row = page.getByRole('row').filter({ hasText: 'مرحبا 🚀' });
    await row.getByRole('button', { name: 'Revoke' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click();
    await row.waitFor({ state: 'detached' });
    expect(await page.content()).not.toContain(secret);
    expect(await statusOf(url, secret)).toBe(401);
    await owner.close();
  });
});

/** Presses Tab until the focus is on the button. */
async function reachByTab(page: Page, button: Locator): Promise<void> {
  const focused = page.locator(':focus').and(button);
  await button.waitFor();
  for (let presses = 0; presses < 100; presses += 1) {
    if ((await focused.count()) > 0) return;
    await page.keyboard.press('Tab');
  }
  throw new Error(`Tab does not reach ${button}`);
}

/** The answer to the next request below `target`. */
function changed(page: Page, target: string): { responded: Promise<{ messageId: string }> } {
  const response = page.waitForResponse((answer) => answer.url().includes(target));
  return { responded: response.then((answer) => answer.json() as Promise<{ messageId: string }>) };
}

async function statusOf(url: string, token: string): Promise<number> {
  return (await fetch(`${url}/v2/waypost/session`, { headers: { authorization: `Bearer ${token}` } })).status;
}
