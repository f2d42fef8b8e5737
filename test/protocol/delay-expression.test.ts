import { describe, expect, it } from 'vitest';
import { DelayExpressionError, delayMsOf, parseDelayExpression } from '../../src/protocol/times/delay-expression.ts';
import { fc } from '../support/fast-check.ts';

const delayOf = (text: string, retried = 0): number | undefined => delayMsOf(parseDelayExpression(text), retried);

describe('a delay expression', () => {
  it.each([
    ['1000', 3, 1000],
    ['15000', 0, 15_000],
    ['1000 * retried', 2, 2000],
    ['2000 * retried', 3, 6000],
    ['1000 * (1 + retried)', 0, 1000],
    ['1000 * (1 + retried)', 2, 3000],
    ['pow(retried, 2) * 1000', 3, 9000],
    ['pow(2, retried) * 1000', 4, 16_000],
    ['max(1, 5, 3)', 0, 5],
    ['min(4, 2)', 0, 2],
    ['min(4)', 0, 4],
    ['sqrt(16)', 0, 4],
    ['abs(-7)', 0, 7],
    ['exp(0)', 0, 1],
    ['floor(1.9) + ceil(1.1)', 0, 3],
    ['round(2.5)', 0, 3],
    ['abs(round(-2.5))', 0, 3],
    ['round(0.49999999999999994) + 1', 0, 1],
    ['7 - 2 - 1', 0, 4],
    ['24 / 4 / 2', 0, 3],
    ['2 + 3 * 4', 0, 14],
    ['(2 + 3) * 4', 0, 20],
    ['-2 + 5', 0, 3],
    ['2 * -3 + 10', 0, 4],
    ['+3', 0, 3],
    [' \t1 +\t1 ', 0, 2],
    ['1.75 * 100', 0, 175],
  ])('%s with retried = %d is %d ms (53 to 55)', (text, retried, ms) => {
    expect(delayOf(text, retried)).toBe(ms);
  });

  it.each([
    ['-5', 0],
    ['1 - 2', 0],
    ['-0', 0],
    ['0.9', 0],
    ['1999.9', 1999],
    ['86400001', 86_400_000],
    ['pow(10, 300)', 86_400_000],
  ])('%s is clamped to the range: %d ms', (text, ms) => {
    expect(Object.is(delayOf(text), ms)).toBe(true);
  });

  it.each(['1 / 0', '0 / 0', 'sqrt(-1)', 'pow(10, 400)', 'exp(1000)', '9'.repeat(400), '1000 / retried'])(
    '%s has no finite result, so the default applies',
    (text) => {
      expect(delayOf(text)).toBeUndefined();
    },
  );

  it.each([
    '',
    ' ',
    '1 +',
    '* 2',
    '(1',
    '1)',
    '()',
    '1 2',
    '1.',
    '.5',
    '1e3',
    '0x10',
    '--1',
    '1 % 2',
    '2 ** 3',
    '1; 2',
    'Retried',
    'retried(1)',
    'POW(1, 2)',
    'pow',
    'pow(1)',
    'pow(1, 2, 3)',
    'sqrt()',
    'sqrt(1, 2)',
    'min()',
    'min(1,)',
    'constructor',
    'toString(1)',
    '__proto__',
    'hasOwnProperty(1)',
    'process.exit(1)',
    'this',
    'retried.constructor',
    '"a"',
    '1\n+1',
    '٣',
    '1,2',
  ])('is not %j (56)', (text) => {
    expect(() => parseDelayExpression(text)).toThrow(DelayExpressionError);
  });

  it('reports the position of an error', () => {
    expect(() => parseDelayExpression('1 + foo(2)')).toThrow('unknown name "foo" at position 5');
    expect(() => parseDelayExpression('(1 + 2')).toThrow('unexpected end, expected ")"');
    expect(() => parseDelayExpression('1 ? 2')).toThrow('unexpected character at position 3');
    expect(() => parseDelayExpression('pow(1)')).toThrow('pow at position 1 takes 2 arguments, not 1');
  });

  it('keeps the text as it was sent (57)', () => {
    expect(parseDelayExpression('1000  *retried').text).toBe('1000  *retried');
  });

  it('is limited in length, depth and size', () => {
    const nested = (depth: number): string => `${'('.repeat(depth)}1${')'.repeat(depth)}`;
    expect(delayOf(nested(32))).toBe(1);
    expect(() => parseDelayExpression(nested(33))).toThrow(/32 levels/);
    expect(delayOf(Array(40).fill('(1)').join('+'))).toBe(40);
    expect(() => parseDelayExpression('abs('.repeat(33))).toThrow(/32 levels/);
    expect(delayOf(`1${' '.repeat(1023)}`)).toBe(1);
    expect(() => parseDelayExpression(`1${' '.repeat(1024)}`)).toThrow(/1024 characters/);
    expect(delayOf(Array(256).fill('1').join('+'))).toBe(256);
    expect(() => parseDelayExpression(Array(257).fill('1').join('+'))).toThrow(/512 operations/);
  });
});

/** An independent reading of the same grammar: a tree that prints itself and calculates itself. */
interface Tree {
  text: string;
  value: (retried: number) => number;
}

const CALCULATE: Record<string, (a: number, b: number) => number> = {
  '+': (a, b) => a + b,
  '-': (a, b) => a - b,
  '*': (a, b) => a * b,
  '/': (a, b) => a / b,
};

const CALL: Record<string, (a: number) => number> = {
  sqrt: Math.sqrt,
  abs: Math.abs,
  exp: Math.exp,
  floor: Math.floor,
  ceil: Math.ceil,
  round: (a) => (a < 0 ? -Math.round(-a) : Math.round(a)),
};

/** Every operation in parentheses, so that the reference needs no opinion about precedence. */
const { tree } = fc.letrec<{ tree: Tree }>((tie) => ({
  tree: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    fc.nat({ max: 9999 }).map((n): Tree => ({ text: String(n), value: () => n })),
    fc.constant<Tree>({ text: 'retried', value: (retried) => retried }),
    fc.tuple(fc.constantFrom('+', '-', '*', '/'), tie('tree'), tie('tree')).map(
      ([op, a, b]): Tree => ({
        text: `(${a.text} ${op} ${b.text})`,
        value: (r) => CALCULATE[op]?.(a.value(r), b.value(r)) ?? NaN,
      }),
    ),
    fc
      .tuple(fc.constantFrom(...Object.keys(CALL)), tie('tree'))
      .map(([name, a]): Tree => ({ text: `${name}(${a.text})`, value: (r) => CALL[name]?.(a.value(r)) ?? NaN })),
    fc.tuple(fc.constantFrom('min', 'max'), fc.array(tie('tree'), { minLength: 1, maxLength: 3 })).map(
      ([name, list]): Tree => ({
        text: `${name}(${list.map(({ text }) => text).join(',')})`,
        value: (r) => Math[name === 'min' ? 'min' : 'max'](...list.map(({ value }) => value(r))),
      }),
    ),
  ),
}));

describe('the evaluator', () => {
  it('agrees with an independent evaluator on every tree', () => {
    fc.assert(
      fc.property(tree, fc.nat({ max: 20 }), ({ text, value }, retried) => {
        fc.pre(text.length <= 500);
        const raw = value(retried);
        const expected = Number.isFinite(raw) ? Math.min(86_400_000, Math.max(0, Math.floor(raw))) : undefined;
        expect(delayOf(text, retried)).toBe(expected);
      }),
    );
  });

  it('agrees with JavaScript on flat chains of operators', () => {
    const chain = fc.array(fc.tuple(fc.constantFrom('+', '-', '*', '/'), fc.integer({ min: 1, max: 99 })), {
      maxLength: 12,
    });
    fc.assert(
      fc.property(fc.nat({ max: 99 }), chain, (first, rest) => {
        const text = rest.reduce((sum, [op, n]) => `${sum} ${op} ${n}`, String(first));
        // Products first, then sums: precedence spelt out.
        const sums: number[] = [first];
        for (const [op, n] of rest) {
          const last = sums.pop() ?? 0;
          if (op === '*') sums.push(last * n);
          else if (op === '/') sums.push(last / n);
          else sums.push(last, op === '+' ? n : -n);
        }
        const raw = sums.slice(1).reduce((sum, n) => sum + n, sums[0] ?? 0);
        expect(delayOf(text)).toBe(Math.min(86_400_000, Math.max(0, Math.trunc(raw))) + 0);
      }),
    );
  });

  it('rejects or accepts any text, and always returns a value in range', () => {
    const text = fc.oneof(fc.string(), fc.stringMatching(/^[0-9retidpowmx(),.+*/ -]{0,60}$/));
    fc.assert(
      fc.property(text, fc.nat(), (some, retried) => {
        let delay: number | undefined;
        try {
          delay = delayOf(some, retried);
        } catch (error) {
          expect(error).toBeInstanceOf(DelayExpressionError);
        }
        expect(delay === undefined || (Number.isInteger(delay) && delay >= 0 && delay <= 86_400_000)).toBe(true);
      }),
    );
  });
});
