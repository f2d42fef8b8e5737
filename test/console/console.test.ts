/**
 * The main task of each screen, done in a real browser against one server. Checks that hold for every screen are in
 * screens.full.test.ts; longer tasks and large amounts of data in tasks.full.test.ts.
 */
import type { Locator, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { RunningServer } from '../../src/server/server.ts';
import { startDevelopmentServer } from '../support/development-server.ts';
import { eventually } from '../support/eventually.ts';
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

  it('says that an address has no screen, and links to the overview', async () => {
    await visit.goTo('/message', 'Page not found');
    await page.getByRole('main').getByRole('link', { name: 'Overview' }).click();
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
  });

  it('reports a screen that cannot be loaded, keeps the rest of the page usable, and loads the screen once the server is back', async () => {
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

  it('leads from the overview to the reason of a dead message in two clicks', async () => {
    await visit.goTo('/overview');
    await page.getByRole('row', { name: 'status 500' }).getByRole('link').first().click();
    await page
      .getByRole('table')
      .getByRole('link', { name: `${scene.app.url}/broken` })
      .first()
      .click();
    await page.getByText('the endpoint responded with status 500').first().waitFor();
    // The server's sentence has ISO times, which the console shows in local format.
    expect(await page.getByRole('region', { name: 'Explanation' }).textContent()).not.toMatch(/\dT\d/);
  });

  it('retries a dead message, which is then delivered', async () => {
    scene.app.isRepaired = true;
    await visit.goTo(`/messages/${scene.ids.failed}`);
    await page.getByRole('button', { name: 'Retry now' }).click();
    await page.getByRole('region', { name: 'Explanation' }).getByText('delivered', { exact: true }).waitFor();
    expect(new URL(page.url()).pathname).not.toContain(scene.ids.failed);
    await page.getByText('This is a copy of').waitFor();
    await visit.goTo('/dlq');
    expect(await page.getByRole('link', { name: `${scene.app.url}/broken` }).count()).toBe(1);
    scene.app.isRepaired = false;
  });

  it('resumes and pauses a queue by keyboard alone', async () => {
    await visit.goTo('/queues', 'invoices');
    for (const [name, next] of [
      ['Resume', 'Pause'],
      ['Pause', 'Resume'],
    ] as const) {
      await reachByTab(page, page.getByRole('row', { name: 'invoices' }).getByRole('button', { name, exact: true }));
      await page.keyboard.press('Enter');
      await page.getByRole('row', { name: 'invoices' }).getByRole('button', { name: next, exact: true }).waitFor();
    }
  });

  it('traps the keyboard focus in a dialog, focuses Close first, and returns the focus afterwards', async () => {
    await visit.goTo('/queues', LONG_NAME);
    const deleteButton = page.getByRole('row', { name: LONG_NAME }).getByRole('button', { name: 'Delete' });
    const dialog = page.getByRole('dialog', { name: 'Delete' });
    await reachByTab(page, deleteButton);
    await page.keyboard.press('Enter');
    await dialog.getByText(`Deletes the queue ${LONG_NAME}`).waitFor();
    const focused = [];
    for (let presses = 0; presses < 4; presses += 1) {
      focused.push(await dialog.locator(':focus').allTextContents());
      await page.keyboard.press('Tab');
    }
    // Between the last and the first button, the browser's own controls have the focus.
    expect(focused).toEqual([['Close'], ['Delete'], [], ['Close']]);
    expect(await visit.problems()).toEqual([]);
    await page.keyboard.press('Escape');
    await dialog.waitFor({ state: 'detached' });
    expect(await deleteButton.and(page.locator(':focus')).count()).toBe(1);
  });

  it('shows the next ten times of a schedule in both time zones, and runs it now', async () => {
    await visit.goTo('/schedules', 'morning-report');
    await page.getByRole('row', { name: 'morning-report' }).getByRole('button', { name: 'Open' }).click();
    const dialog = page.getByRole('dialog', { name: 'morning-report' });
    await dialog.getByRole('columnheader', { name: 'Europe/Berlin' }).waitFor();
    const times = dialog.getByRole('row').filter({ hasText: '7:30:00' });
    expect(await times.count()).toBe(10);
    const { responded } = nextResponse(page, '/v2/publish/');
    await dialog.getByRole('button', { name: 'Run now' }).click();
    const { messageId } = await responded;
    await visit.goTo(`/messages/${messageId}`);
    await page.getByRole('region', { name: 'Explanation' }).getByText('delivered', { exact: true }).waitFor();
  });

  it('shows a message in the list after it was sent from the form', async () => {
    await visit.goTo('/send');
    await page.getByLabel('Destination (URL').fill(`${scene.app.url}/from-the-form`);
    await page.getByRole('button', { name: 'Send', exact: true }).click();
    await page.getByText('messageId').first().waitFor();
    await page.getByRole('link', { name: 'Messages', exact: true }).click();
    const row = page.getByRole('row').filter({ hasText: '/from-the-form' });
    await row.getByText('delivered').waitFor();
  });

  it('finds the event that a run waits for, and sends it', async () => {
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

  it('shows the recorded and the new step of a parked run, and resumes it once its code is restored', async () => {
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

  it('finds a failed run, and resumes it once the cause is fixed', async () => {
    await visit.goTo('/overview');
    const causes = page.getByRole('table', { name: 'Failures by cause' });
    await causes.getByRole('link', { name: '1 run', exact: true }).click();
    await page.getByRole('heading', { name: '1 failed run' }).waitFor();
    await page.getByRole('link', { name: scene.ids.failedRun }).click();
    await page.getByText('the bank is closed').first().waitFor();
    scene.app.isBankOpen = true;
    await page.getByRole('button', { name: 'Resume' }).click();
    await page.getByText('success', { exact: true }).first().waitFor();
    await page.getByRole('link', { name: scene.ids.failedRun }).waitFor();
  });
});

describe.skipIf(obstacle !== undefined)(`the overview of a new server${reason}`, () => {
  let server: RunningServer;
  beforeAll(async () => {
    server = await startDevelopmentServer();
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

  it('hides the hint about the first message after a delivery', async () => {
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

describe.skipIf(obstacle !== undefined)(`the API page${reason}`, () => {
  it('finds an operation, builds its request, asks for confirmation, and sends it', async () => {
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
    const confirmation = page.getByRole('dialog', { name: 'Send the request' });
    await confirmation.getByText(`POST ${scene.url}/v2/flowControl/from%20the%20page/pause`).waitFor();
    await confirmation.getByRole('button', { name: 'Send' }).click();
    // "from the page" is not a valid name of a key, so the page shows the error of the server.
    await operation.getByLabel('Response').getByText('HTTP 400').waitFor();
    await operation.getByLabel('flowControlKey').fill('from-the-page');
    await operation.getByRole('button', { name: 'Send' }).click();
    await confirmation.getByRole('button', { name: 'Send' }).click();
    await operation.getByLabel('Response').getByText('HTTP 200').waitFor();
    expect(viewer.faults).toEqual([]);
    await viewer.close();
  });
});

describe.skipIf(obstacle !== undefined)(`the console of a server that needs a token${reason}`, () => {
  let url: string;
  let fullToken: string;
  beforeAll(async () => {
    const { stdout } = await giveCommand(['init', '--data-dir', scene.servers.dataDir]);
    fullToken = /^QSTASH_TOKEN=(.*)$/m.exec(stdout)?.[1] ?? '';
    url = await scene.servers.start(['serve']).url();
  });

  async function createToken(scope: string): Promise<string> {
    const headers = { authorization: `Bearer ${fullToken}`, 'Content-Type': 'application/json' };
    const response = await fetch(`${url}/v2/waypost/tokens`, {
      method: 'POST',
      headers,
      body: JSON.stringify({ scope }),
    });
    return ((await response.json()) as { token: string }).token;
  }

  it('rejects an invalid token, and accepts a valid one', async () => {
    const visit = await Visit.open(scene.browser, { url });
    const { page } = visit;
    await page.goto(`${url}/console/queues`);
    for (const token of ['wrong', fullToken]) {
      await page.getByLabel('Project token').fill(token);
      await page.getByRole('button', { name: 'Open' }).click();
      if (token === 'wrong') await page.getByRole('alert').getByText('rejected this token').waitFor();
    }
    await page.getByText('No queues yet').waitFor();
    expect(page.url()).toBe(`${url}/console/queues`);
    expect(visit.faults).toEqual([]);
    await page.context().close();
  });

  it('explains the limits of a read-only token', async () => {
    const reader = await Visit.open(scene.browser, { url, token: await createToken('read-only') });
    await reader.goTo('/settings', 'A full token is required');
    await reader.page.getByText('This token is read-only. Changes need a full token.').waitFor();
    await reader.goTo('/send');
    await reader.page.getByLabel('Destination (URL').fill('https://example.com');
    await reader.page.getByRole('button', { name: 'Send', exact: true }).click();
    await reader.page.getByRole('alert').getByText('read-only').waitFor();
    await reader.close();
  });

  it('explains the limits of a publish-only token, and publishes with it', async () => {
    const publisher = await Visit.open(scene.browser, { url, token: await createToken('publish-only') });
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

  it('creates a token, shows its secret once, and revokes it', async () => {
    const owner = await Visit.open(scene.browser, { url, token: fullToken });
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

/** The response to the next request whose URL contains `target`. */
function nextResponse(page: Page, target: string): { responded: Promise<{ messageId: string }> } {
  const response = page.waitForResponse((each) => each.url().includes(target));
  return { responded: response.then((received) => received.json() as Promise<{ messageId: string }>) };
}

async function statusOf(url: string, token: string): Promise<number> {
  return (await fetch(`${url}/v2/waypost/session`, { headers: { authorization: `Bearer ${token}` } })).status;
}
