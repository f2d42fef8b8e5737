/**
 * A project's data can be neither read nor changed with the tokens of another project. The cases come from the route table: a
 * new route is covered automatically, or fails until support/belongings.ts can create what its path names.
 */
import type { InjectOptions } from 'light-my-request';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { ConfigHeader } from '../../src/api/publishing/config-headers.ts';
import type { Route } from '../../src/api/route.ts';
import { SimulatedClock } from '../support/simulated-clock.ts';
import { bodyOf, CANARY, furnish, type Ids, isNaming, pathOf, queryOf } from './support/belongings.ts';
import { LIMITS, OTHER_TOKEN, openWorld, type Reply, TOKEN, type World } from './support/world.ts';

const table = await (async () => {
  const probe = await openWorld();
  await probe.close();
  return probe.routes.filter(({ access }) => access !== 'public');
})();
const named = table.map((route): [string, Route] => [`${route.method} ${route.path}`, route]);

let world: World;
let ids: Ids;

async function open(): Promise<void> {
  // Time stands still, so that the owner's view changes only when somebody changes it; what they change has a new time.
  const clock = new SimulatedClock();
  world = await openWorld({ limits: { ...LIMITS, urlGroupsMax: 2 } }, { clock });
  ids = await furnish(world);
  clock.jumpBy(60_000);
}

const reading = named.filter(([, { access }]) => access === 'read');
const changing = named.filter(([, { access }]) => access !== 'read');

describe('of what another project has', () => {
  let before: Record<string, string>;
  beforeAll(async () => {
    await open();
    before = await ownersView();
  });
  afterAll(() => world.close());

  it.each(reading)('%s tells as much as of what nobody has', (_name, route) => expectKeptOut(route));
  it.each(reading)('%s tells the owner, so that nothing else kept the others out', (_name, route) => expectOpen(route));
  it('and all of them leave it as it was', async () => expect(await ownersView()).toEqual(before));
});

describe.each(changing)('%s', (_name, route) => {
  // One for both: the first sees to it that everything stays as it was.
  beforeAll(open);
  afterAll(() => world.close());

  it('treats what another project has as what nobody has', async () => {
    const before = await ownersView();
    await expectKeptOut(route);
    expect(await ownersView()).toEqual(before);
  });

  it('does for the owner what it does not for others, so that nothing else kept them out', () => expectOpen(route));
});

/** What a route does with the things of another project is what it does with those that nobody has. */
async function expectKeptOut(route: Route): Promise<void> {
  const strange = Object.fromEntries(Object.entries(ids).map(([word, id]) => [word, otherThan(id)]));
  for (const [request, sameOfNobody] of pairs(requestsFor(route, ids), requestsFor(route, strange))) {
    const ofNobody = await ask(OTHER_TOKEN, sameOfNobody);
    const ofOwner = await ask(OTHER_TOKEN, request);
    expect(withoutIds(ofOwner, ids), request.url as string).toEqual(withoutIds(ofNobody, strange));
    expect(ofOwner.text).not.toContain(CANARY);
    const asked = `${request.url}${request.payload}${Object.values(request.headers ?? {}).join(' ')}`;
    for (const id of Object.values(ids)) if (!asked.includes(id)) expect(ofOwner.text).not.toContain(id);
  }
}

async function expectOpen(route: Route): Promise<void> {
  const reply = await ask(TOKEN, requestsFor(route, ids).at(-1) ?? {});
  expect([200, 201, 202], reply.text).toContain(reply.status);
}

describe('a project', () => {
  beforeEach(open);
  afterEach(() => world.close());

  it('shows the owner all of it', async () => {
    const view = await ownersView();
    for (const route of table.filter((each) => each.access === 'read' && isNaming(each))) {
      expect(view[route.path], route.path).toMatch(/^200 /);
    }
    expect(Object.values(view).filter((text) => text.includes(CANARY)).length).toBeGreaterThan(5);
  });

  it('does not count what another project has against a quota', async () => {
    const payload = '{"endpoints":[{"url":"https://ok.example/"}]}';
    const add = (name: string): InjectOptions => ({ method: 'POST', url: `/v2/topics/${name}/endpoints`, payload });
    expect((await ask(TOKEN, add('second'))).status).toBe(200);
    expect((await ask(TOKEN, add('third'))).status).toBe(412);
    expect((await ask(OTHER_TOKEN, add('first'))).status).toBe(200);
  });

  it('keeps signing keys apart: those of one project are not shown to another, however often it rotates its own', async () => {
    const read = async (token: string): Promise<unknown> => (await ask(token, { method: 'GET', url: '/v2/keys' })).json;
    const owners = await read(TOKEN);
    await ask(OTHER_TOKEN, { method: 'POST', url: '/v2/keys/rotate' });
    const others = await read(OTHER_TOKEN);
    expect(await read(TOKEN)).toEqual(owners);
    expect(others).not.toEqual(owners);
  });
});

/** Each way in which a route can be pointed at the things called `ids`; the last one is what the owner can do, too. */
function requestsFor(route: Route, things: Ids): InjectOptions[] {
  const { method, path, takes } = route;
  const base = pathOf(route, things);
  const payload = bodyOf(route, things);
  const headers = takes?.configHeaders ? configHeaders(takes.configHeaders, things) : {};
  // The name of a run that is active is refused.
  if (path.startsWith('/v2/workflows/dlq/')) delete headers['Upstash-Workflow-RunId'];
  const request = (url: string): InjectOptions => ({ method, url, headers, ...(payload ? { payload } : {}) });
  const destinations = ['https://ok.example/', ...(path.startsWith('/v2/trigger/') ? [] : [things['topics'] ?? ''])];
  const urls = path.endsWith('*') ? destinations.map((destination) => base.replace('*', destination)) : [base];
  if (!takes?.filters) return urls.map((url) => request(`${url}?${queryOf(route, things)}`));
  const filters = new Set(takes.filters.rows.map(({ name }) => name));
  const naming = [
    ...(filters.has('messageIds') ? [`messageIds=${things['messages']}`] : []),
    ...(filters.has('dlqIds') ? [`dlqIds=${things['dlq']}`] : []),
  ];
  return [...urls, `${base}?label=${CANARY}`, ...naming.map((filter) => `${base}?${filter}`)].map(request);
}

/** The config headers that name something, as far as the route reads them. */
function configHeaders(known: readonly ConfigHeader[], things: Ids): Record<string, string> {
  const naming: Record<string, string> = {
    'Upstash-Deduplication-Id': things['deduplication'] ?? '',
    'Upstash-Flow-Control-Key': things['flowcontrol'] ?? '',
    'Upstash-Flow-Control-Value': 'parallelism=1',
    'Upstash-Schedule-Id': things['schedules'] ?? '',
    'Upstash-Queue-Name': things['queues'] ?? '',
    'Upstash-Workflow-RunId': things['workflows'] ?? '',
  };
  const names = new Set(known.map(({ name }) => name));
  return Object.fromEntries(Object.entries(naming).filter(([name]) => names.has(name)));
}

/** Everything that the owner can read, by path. */
async function ownersView(): Promise<Record<string, string>> {
  const view: Record<string, string> = {};
  for (const route of table.filter(({ method }) => method === 'GET')) {
    const [request] = requestsFor(route, ids);
    if (!request) throw new Error(`there is no request for ${route.path}`);
    const { status, text } = await ask(TOKEN, request);
    view[route.path] = `${status} ${text}`;
  }
  return view;
}

function ask(token: string, request: InjectOptions): Promise<Reply> {
  return world.ask({ ...request, headers: { ...request.headers, authorization: `Bearer ${token}` } });
}

/** An id of the same form that nobody has. */
function otherThan(id: string): string {
  return `${id.slice(0, -1)}${id.endsWith('7') ? '8' : '7'}`;
}

/** The part that two responses must have in common: all except the requested names and newly generated values. */
function withoutIds({ status, text }: Reply, asked: Ids): [number, string] {
  const named = Object.values(asked).reduce((rest, id) => rest.replaceAll(id, '<id>'), text);
  return [status, named.replace(/\b(msg|scd|sig|tok|wfr)_[\w-]+|(?<="token":")[^"]+/g, '<new>')];
}

function pairs<T>(left: readonly T[], right: readonly T[]): [T, T][] {
  return left.map((item, at) => [item, right[at] as T]);
}
