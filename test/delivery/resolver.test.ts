/** The order of lookups, and how projects share them. */
import { describe, expect, it } from 'vitest';
import {
  type LookupRequest,
  type ResolvedAddress,
  Resolver,
  resolverOf,
} from '../../src/delivery/addresses/resolver.ts';

const ADDRESS: ResolvedAddress = { address: '93.184.216.34', family: 4 };

/** A resolver whose lookups end when the test says so. */
function byHand(unknownMax?: number) {
  const lookedUp: string[] = [];
  const lookups = new Map<string, { resolve: () => void; reject: () => void }>();
  const resolver = new Resolver((hostname) => {
    lookedUp.push(hostname);
    return new Promise((resolve, reject) => {
      lookups.set(hostname, { resolve: () => resolve([ADDRESS]), reject: () => reject(new Error('ENOTFOUND')) });
    });
  }, unknownMax);
  const request = (hostname: string, projectId = 1) => resolver.request(hostname, projectId);
  const succeed = async (hostname: string) => {
    lookups.get(hostname)?.resolve();
    await new Promise((resolve) => setImmediate(resolve));
  };
  const fail = async (hostname: string) => {
    lookups.get(hostname)?.reject();
    await new Promise((resolve) => setImmediate(resolve));
  };
  return { request, lookedUp, succeed, fail };
}

async function addresses({ started }: LookupRequest): Promise<ResolvedAddress[]> {
  return (await started).addresses;
}

/** Names for which no server responds. */
function silent(count: number, zone = 'silent'): string[] {
  return Array.from({ length: count }, (_, nth) => `${nth}.${zone}.example`);
}

describe('a name', () => {
  it('is resolved once for all concurrent requests, and again for a later one', async () => {
    const { request, lookedUp, succeed } = byHand();
    const both = [request('a.example', 1), request('a.example', 2)].map(addresses);
    await succeed('a.example');
    expect(await Promise.all(both)).toEqual([[ADDRESS], [ADDRESS]]);
    request('a.example');
    expect(lookedUp).toEqual(['a.example', 'a.example']);
  });

  it('that has resolved before does not wait for names without a response', async () => {
    const { request, lookedUp, succeed } = byHand();
    request('good.example');
    await succeed('good.example');
    for (const name of silent(100)) request(name);
    request('good.example');
    expect(lookedUp.filter((name) => name === 'good.example')).toHaveLength(2);
  });

  it('that is new waits until an earlier lookup has succeeded or failed', async () => {
    const { request, lookedUp, succeed, fail } = byHand(4);
    for (const name of ['a', 'b', 'c', 'd']) request(name);
    expect(lookedUp).toEqual(['a', 'b']);
    await fail('a');
    await succeed('b');
    expect(lookedUp).toEqual(['a', 'b', 'c', 'd']);
  });

  it('without remaining requests is not looked up', async () => {
    const { request, lookedUp, succeed } = byHand(1);
    request('first.example');
    const left = [request('left.example'), request('left.example')];
    const kept = [request('kept.example'), request('kept.example')];
    for (const each of [...left, ...kept.slice(1)]) each.cancel();
    await succeed('first.example');
    expect(lookedUp).toEqual(['first.example', 'kept.example']);
  });

  it('for which two projects wait is resolved once for both', async () => {
    const { request, lookedUp, succeed } = byHand(1);
    request('first.example');
    const both = [request('same.example', 1), request('same.example', 2)].map(addresses);
    await succeed('first.example');
    await succeed('same.example');
    expect(await Promise.all(both)).toEqual([[ADDRESS], [ADDRESS]]);
    expect(lookedUp).toEqual(['first.example', 'same.example']);
  });

  it('is resolved again after a failure', async () => {
    const { request, lookedUp, fail } = byHand();
    const failed = addresses(request('a.example'));
    await Promise.all([expect(failed).rejects.toThrow('ENOTFOUND'), fail('a.example')]);
    request('a.example');
    expect(lookedUp).toEqual(['a.example', 'a.example']);
  });
});

describe('a project with a thousand names without a response', () => {
  it('leaves permits to others, whose names are looked up at once', () => {
    const { request, lookedUp } = byHand();
    for (const name of silent(1_000)) request(name, 1);
    expect(lookedUp).toHaveLength(16);
    request('good.example', 2);
    expect(lookedUp.at(-1)).toBe('good.example');
  });

  it('has fewer permits in each worker of a process with several, and at least one', () => {
    const permitsOfEach = (workers: number): number => {
      const lookedUp: string[] = [];
      const resolver = resolverOf(workers, (hostname) => {
        lookedUp.push(hostname);
        return new Promise(() => {});
      });
      for (const name of silent(100)) resolver.request(name, 1);
      return lookedUp.length;
    };
    expect([1, 2, 4, 64].map(permitsOfEach)).toEqual([16, 8, 4, 1]);
  });

  it('is served round-robin with others while all permits are taken', async () => {
    const { request, lookedUp, fail } = byHand(2);
    for (const name of silent(1_000)) request(name, 1);
    for (const name of silent(1_000, 'dead')) request(name, 2);
    request('good.example', 3);
    expect(lookedUp).toEqual(['0.silent.example', '0.dead.example']);
    for (const name of ['0.silent.example', '0.dead.example', '1.silent.example']) await fail(name);
    expect(lookedUp).toContain('good.example');
  });

  it('has all its names looked up, one after the other', async () => {
    const { request, lookedUp, fail } = byHand(2);
    for (const name of silent(20)) request(name);
    for (const name of silent(20)) await fail(name);
    expect(lookedUp).toEqual(silent(20));
  });
});

describe('a name of this machine', () => {
  it.each(['app.localhost', 'a.b.LOCALHOST', 'localhost.', 'app.localhost.'])(
    '%s is loopback, without a lookup',
    async (name) => {
      const { request, lookedUp } = byHand();
      expect(await addresses(request(name))).toEqual([
        { address: '127.0.0.1', family: 4 },
        { address: '::1', family: 6 },
      ]);
      expect(lookedUp).toEqual([]);
    },
  );

  it.each(['localhost', 'notlocalhost', 'localhost.example', 'localhost.example.'])('is not %s', (name) => {
    const { request, lookedUp } = byHand();
    request(name);
    expect(lookedUp).toEqual([name]);
  });
});
