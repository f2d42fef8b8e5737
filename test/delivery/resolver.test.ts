/** Who waits for whom when names are resolved? */
import { describe, expect, it } from 'vitest';
import { joiningResolver, type ResolvedAddress } from '../../src/delivery/resolver.ts';

const ADDRESS: ResolvedAddress = { address: '93.184.216.34', family: 4 };

/** A resolver whose names are answered by hand. */
function byHand() {
  const asked: string[] = [];
  const answers = new Map<string, { resolve: () => void; reject: () => void }>();
  const resolver = joiningResolver((hostname) => {
    asked.push(hostname);
    return new Promise((resolve, reject) => {
      answers.set(hostname, { resolve: () => resolve([ADDRESS]), reject: () => reject(new Error('ENOTFOUND')) });
    });
  });
  const settled = () => new Promise((resolve) => setImmediate(resolve));
  return { resolver, asked, answers, settled };
}

describe('a name', () => {
  it('is resolved once for all who ask meanwhile, and anew for who asks later', async () => {
    const { resolver, asked, answers } = byHand();
    const both = [resolver('a.example'), resolver('a.example')];
    answers.get('a.example')?.resolve();
    expect(await Promise.all(both)).toEqual([[ADDRESS], [ADDRESS]]);
    void resolver('a.example');
    expect(asked).toEqual(['a.example', 'a.example']);
  });

  it('that has resolved before waits for no others, however many of those get no answer', async () => {
    const { resolver, asked, answers } = byHand();
    const first = resolver('good.example');
    answers.get('good.example')?.resolve();
    await first;
    for (let nth = 0; nth < 100; nth += 1) void resolver(`${nth}.silent.example`);
    const again = resolver('good.example');
    answers.get('good.example')?.resolve();
    expect(await again).toEqual([ADDRESS]);
    expect(asked.filter((name) => name.endsWith('.silent.example'))).toHaveLength(16);
  });

  it('that is new waits for those before it, and follows when one of them is answered, or refused', async () => {
    const { resolver, asked, answers, settled } = byHand();
    const before = Array.from({ length: 16 }, (_, nth) => resolver(`${nth}.example`).catch(() => undefined));
    void resolver('first.example');
    void resolver('second.example');
    answers.get('0.example')?.reject();
    answers.get('1.example')?.resolve();
    await Promise.all(before.slice(0, 2));
    await settled();
    expect(asked.slice(16)).toEqual(['first.example', 'second.example']);
  });
});
