/** Who waits for whom when names are resolved? */
import { describe, expect, it } from 'vitest';
import { type Asked, type ResolvedAddress, Resolver, resolverOf } from '../../src/delivery/addresses/resolver.ts';

const ADDRESS: ResolvedAddress = { address: '93.184.216.34', family: 4 };

/** A resolver whose names are answered by hand. */
function byHand(unknownMax?: number) {
  const lookedUp: string[] = [];
  const answers = new Map<string, { resolve: () => void; reject: () => void }>();
  const resolver = new Resolver((hostname) => {
    lookedUp.push(hostname);
    return new Promise((resolve, reject) => {
      answers.set(hostname, { resolve: () => resolve([ADDRESS]), reject: () => reject(new Error('ENOTFOUND')) });
    });
  }, unknownMax);
  const ask = (hostname: string, projectId = 1) => resolver.ask(hostname, projectId);
  const answer = async (hostname: string) => {
    answers.get(hostname)?.resolve();
    await new Promise((resolve) => setImmediate(resolve));
  };
  const refuse = async (hostname: string) => {
    answers.get(hostname)?.reject();
    await new Promise((resolve) => setImmediate(resolve));
  };
  return { ask, lookedUp, answer, refuse };
}

async function addresses({ begun }: Asked): Promise<ResolvedAddress[]> {
  return (await begun).answer;
}

/** Names that no server answers for. */
function silent(count: number, zone = 'silent'): string[] {
  return Array.from({ length: count }, (_, nth) => `${nth}.${zone}.example`);
}

describe('a name', () => {
  it('is resolved once for all who ask meanwhile, and anew for who asks later', async () => {
    const { ask, lookedUp, answer } = byHand();
    const both = [ask('a.example', 1), ask('a.example', 2)].map(addresses);
    await answer('a.example');
    expect(await Promise.all(both)).toEqual([[ADDRESS], [ADDRESS]]);
    ask('a.example');
    expect(lookedUp).toEqual(['a.example', 'a.example']);
  });

  it('that has resolved before waits for no others, however many of those get no answer', async () => {
    const { ask, lookedUp, answer } = byHand();
    ask('good.example');
    await answer('good.example');
    for (const name of silent(100)) ask(name);
    ask('good.example');
    expect(lookedUp.filter((name) => name === 'good.example')).toHaveLength(2);
  });

  it('that is new waits for those before it, and follows when one of them is answered, or refused', async () => {
    const { ask, lookedUp, answer, refuse } = byHand(4);
    for (const name of ['a', 'b', 'c', 'd']) ask(name);
    expect(lookedUp).toEqual(['a', 'b']);
    await refuse('a');
    await answer('b');
    expect(lookedUp).toEqual(['a', 'b', 'c', 'd']);
  });

  it('for which nobody waits any more is passed over', async () => {
    const { ask, lookedUp, answer } = byHand(1);
    ask('first.example');
    const left = [ask('left.example'), ask('left.example')];
    const kept = [ask('kept.example'), ask('kept.example')];
    for (const asked of [...left, ...kept.slice(1)]) asked.leave();
    await answer('first.example');
    expect(lookedUp).toEqual(['first.example', 'kept.example']);
  });

  it('for which two projects wait is resolved once for both', async () => {
    const { ask, lookedUp, answer } = byHand(1);
    ask('first.example');
    const both = [ask('same.example', 1), ask('same.example', 2)].map(addresses);
    await answer('first.example');
    await answer('same.example');
    expect(await Promise.all(both)).toEqual([[ADDRESS], [ADDRESS]]);
    expect(lookedUp).toEqual(['first.example', 'same.example']);
  });

  it('is resolved anew for who asks again once it has failed', async () => {
    const { ask, lookedUp, refuse } = byHand();
    const failed = addresses(ask('a.example'));
    await Promise.all([expect(failed).rejects.toThrow('ENOTFOUND'), refuse('a.example')]);
    ask('a.example');
    expect(lookedUp).toEqual(['a.example', 'a.example']);
  });
});

describe('a project with a thousand names without an answer', () => {
  it('leaves places to others, whose names are looked up at once', () => {
    const { ask, lookedUp } = byHand();
    for (const name of silent(1_000)) ask(name, 1);
    expect(lookedUp).toHaveLength(16);
    ask('good.example', 2);
    expect(lookedUp.at(-1)).toBe('good.example');
  });

  it('has fewer places in each worker of a process with several, and one at least', () => {
    const placesOfEach = (workers: number): number => {
      const lookedUp: string[] = [];
      const resolver = resolverOf(workers, (hostname) => {
        lookedUp.push(hostname);
        return new Promise(() => {});
      });
      for (const name of silent(100)) resolver.ask(name, 1);
      return lookedUp.length;
    };
    expect([1, 2, 4, 64].map(placesOfEach)).toEqual([16, 8, 4, 1]);
  });

  it('takes turns with others where all places are taken', async () => {
    const { ask, lookedUp, refuse } = byHand(2);
    for (const name of silent(1_000)) ask(name, 1);
    for (const name of silent(1_000, 'dead')) ask(name, 2);
    ask('good.example', 3);
    expect(lookedUp).toEqual(['0.silent.example', '0.dead.example']);
    for (const name of ['0.silent.example', '0.dead.example', '1.silent.example']) await refuse(name);
    expect(lookedUp).toContain('good.example');
  });

  it('has as many looked up one after the other as without others', async () => {
    const { ask, lookedUp, refuse } = byHand(2);
    for (const name of silent(20)) ask(name);
    for (const name of silent(20)) await refuse(name);
    expect(lookedUp).toEqual(silent(20));
  });
});

describe('a name of this machine', () => {
  it.each(['app.localhost', 'a.b.LOCALHOST', 'localhost.', 'app.localhost.'])(
    '%s is loopback, without a look-up',
    async (name) => {
      const { ask, lookedUp } = byHand();
      expect(await addresses(ask(name))).toEqual([
        { address: '127.0.0.1', family: 4 },
        { address: '::1', family: 6 },
      ]);
      expect(lookedUp).toEqual([]);
    },
  );

  it.each(['localhost', 'notlocalhost', 'localhost.example', 'localhost.example.'])('is not %s', (name) => {
    const { ask, lookedUp } = byHand();
    ask(name);
    expect(lookedUp).toEqual([name]);
  });
});
