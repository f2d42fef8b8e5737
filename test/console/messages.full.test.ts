/** The work with messages in the console, in a real browser: send and follow them, find the cause of a failure, retry. */
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { Servers } from '../support/servers.ts';
import { HOSTILE } from './support/hostile.ts';
import { browserObstacle, openBrowser, Visit } from './support/visit.ts';

const obstacle = browserObstacle();

describe.skipIf(obstacle !== undefined)(`messages${obstacle === undefined ? '' : ` (skipped: ${obstacle})`}`, () => {
  const servers = new Servers();
  const received: { url: string; body: string }[] = [];
  let browser: Browser;
  let url: string;
  let endpoint: string;
  let token: string;
  let readOnlyToken: string;

  beforeAll(async () => {
    endpoint = await servers.openEndpoint((request, response) => {
      let body = '';
      request.on('data', (chunk: Buffer) => {
        body += chunk.toString('utf8');
      });
      request.on('end', () => {
        received.push({ url: request.url ?? '', body });
        response.writeHead(request.url?.startsWith('/broken') ? 500 : 200).end(`order 42 is unknown ${HOSTILE}`);
      });
    });
    token = await makeToken();
    readOnlyToken = await makeToken('--add-token', '--read-only');
    url = await servers.start(['serve', '--allow-destinations', 'loopback']).url();
    browser = await openBrowser();
  });

  afterAll(async () => {
    await browser?.close();
    await servers.close();
  });

  async function makeToken(...options: string[]): Promise<string> {
    const { stdout } = await servers.run(['init', '--data-dir', servers.dataDir, ...options]).waitForExit();
    return /^QSTASH_TOKEN=(.*)$/m.exec(stdout)?.[1] ?? '';
  }

  async function publish(path: string, headers: Record<string, string> = {}): Promise<string> {
    const response = await fetch(`${url}/v2/publish/${endpoint}${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'upstash-retries': '0', ...headers },
      body: `first ${HOSTILE}`,
    });
    return ((await response.json()) as { messageId: string }).messageId;
  }

  async function publishDead(count: number, label: string): Promise<void> {
    for (let n = 0; n < count; n += 1) await publish('/broken', { 'upstash-label': label });
    await eventually(
      () => `${count} messages to fail`,
      async () => {
        const response = await fetch(`${url}/v2/dlq?label=${label}`, { headers: { authorization: `Bearer ${token}` } });
        return ((await response.json()) as { messages: unknown[] }).messages.length === count;
      },
    );
  }

  async function open(path: string, as = token): Promise<Visit> {
    const visit = await Visit.open(browser, { url, token: as });
    await visit.goTo(path);
    return visit;
  }

  it('explains how to send the first message, and shows its delivery', async () => {
    const visit = await open('/overview');
    const { page } = visit;
    await page.getByText('No attempt finished in this time range').waitFor();
    await visit.goTo('/messages', 'No messages yet');
    expect(await page.getByLabel('curl').textContent()).toContain('-H "Authorization: Bearer $QSTASH_TOKEN"');
    await publish('/ok');
    await page.getByRole('link', { name: `${endpoint}/ok` }).waitFor();
    await page.getByRole('cell', { name: 'delivered' }).waitFor();
    expect(visit.faults).toEqual([]);
    await visit.close();
  });

  it('does not move rows under the pointer, counts the new ones, and shows them when the pointer leaves', async () => {
    await publish('/ok?before');
    const visit = await open('/messages');
    const { page } = visit;
    await page.getByText('on', { exact: true }).waitFor();
    await page.getByRole('link', { name: '/ok?before' }).hover();
    await publish('/ok?after');
    await page.getByRole('button', { name: /^\d+ new$/ }).waitFor();
    expect(await page.getByRole('link', { name: '/ok?after' }).count()).toBe(0);
    await page.getByRole('heading', { level: 1 }).hover();
    await page.getByRole('link', { name: '/ok?after' }).waitFor();
    await visit.close();
  });

  it('keeps the filter in the address', async () => {
    await publish('/ok?mine', { 'upstash-label': 'mine' });
    const visit = await open('/messages');
    const { page } = visit;
    await page.getByLabel('Label').fill('mine');
    await page.keyboard.press('Enter');
    await page.waitForURL(/label=mine/);
    await page.reload();
    await page.getByRole('link', { name: '/ok?mine' }).waitFor();
    expect(await page.getByRole('row').count()).toBe(2);
    await visit.close();
  });

  it('shows the reason of a failure in the list of the DLQ, and retries from there', async () => {
    await publishDead(1, 'reason');
    const visit = await open('/dlq?label=reason');
    const { page } = visit;
    await page.getByRole('cell', { name: /^order 42 is unknown/ }).waitFor();
    await page.getByRole('button', { name: 'Details' }).click();
    await page.getByRole('button', { name: 'Retry now' }).click();
    await page.waitForURL(/\/messages\/msg_/);
    await page.getByText('dead', { exact: true }).first().waitFor();
    await page.getByRole('status').getByRole('link', { name: 'msg_' }).click();
    await page.waitForURL(/\/messages\/msg_[^?]*$/);
    expect(visit.faults).toEqual([]);
    await visit.close();
  });

  it('replays a message with another body', async () => {
    const id = await publish('/ok?again');
    const visit = await open(`/messages/${id}`);
    const { page } = visit;
    await page.getByRole('button', { name: 'Replay' }).click();
    await page.getByLabel('Body').fill('second\n🚀');
    await page.getByRole('dialog').getByRole('button', { name: 'Replay' }).click();
    await page.waitForURL((shown) => shown.pathname.includes('/messages/msg_') && !shown.pathname.includes(id));
    await eventually(
      () => 'the endpoint to get the other body',
      () => received.some(({ url: target, body }) => target === '/ok?again' && body === 'second\n🚀'),
    );
    expect(visit.faults).toEqual([]);
    await visit.close();
  });

  it('attempts a delayed message now', async () => {
    const id = await publish('/ok?now', { 'upstash-delay': '1h' });
    const visit = await open(`/messages/${id}`);
    await visit.page.getByRole('button', { name: 'Attempt now' }).click();
    await eventually(
      () => 'the endpoint to get it',
      () => received.some(({ url: target }) => target === '/ok?now'),
    );
    await visit.page.getByRole('region', { name: 'Explanation' }).getByText('delivered', { exact: true }).waitFor();
    await visit.page.getByRole('button', { name: 'Attempt now' }).waitFor({ state: 'detached' });
    expect(visit.faults).toEqual([]);
    await visit.close();
  });

  it('deletes all entries that match a filter, after showing their number', async () => {
    await publishDead(3, 'bulk');
    const visit = await open('/dlq?label=bulk');
    const { page } = visit;
    await page.getByLabel('Select the 3 loaded').check();
    await page.getByRole('button', { name: 'Delete', exact: true }).click();
    await page.getByRole('button', { name: 'Delete 3' }).click();
    await page.getByText('3 of 3 deleted.').waitFor();
    await page.keyboard.press('Escape');
    await page.getByText('No entry matches this filter').waitFor();
    await visit.close();
  });

  it('explains why a read-only token cannot change anything', async () => {
    const id = await publish('/ok', { 'upstash-delay': '1h' });
    const visit = await open(`/messages/${id}`, readOnlyToken);
    const { page } = visit;
    await page.getByText('delayed', { exact: true }).waitFor();
    await page.getByRole('button', { name: 'Cancel message' }).click();
    expect(await page.getByRole('alert').textContent()).toContain('read-only');
    await visit.close();
  });
});
