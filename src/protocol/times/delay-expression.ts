/**
 * Parses and evaluates `Upstash-Retry-Delay` expressions (contract M 8.3): numbers, `retried`, + - * /, parentheses and
 * nine functions, in milliseconds. Our own tokenizer and Pratt parser turn the text into a program for a stack machine. So
 * JavaScript's `eval` is never used, and the length of the text bounds the cost of an evaluation.
 */
import { memo } from '../memo.ts';

const LENGTH_MAX = 1024;
/** Nesting depth of parentheses and calls. */
const DEPTH_MAX = 32;
/** Steps of the finished program. */
const STEPS_MAX = 512;
const DELAY_MAX_MS = 86_400_000;

/** The reason why a text is not a delay expression. `message` fits after `invalid <header>: `. */
export class DelayExpressionError extends Error {
  constructor(reason: string) {
    super(reason);
    this.name = 'DelayExpressionError';
  }
}

type Step =
  | { kind: 'number'; value: number }
  | { kind: 'retried' }
  | { kind: 'negate' }
  | { kind: 'binary'; operator: Operator }
  | { kind: 'call'; apply: (values: number[]) => number; count: number };

type Operator = '+' | '-' | '*' | '/';

/** A checked expression, which can be evaluated any number of times. */
export interface DelayExpression {
  /** The text as the client sent it. */
  readonly text: string;
  /** In postfix order. */
  readonly steps: readonly Step[];
}

interface DelayFunction {
  countMin: number;
  countMax: number;
  apply: (values: number[]) => number;
}

function unary(apply: (value: number) => number): DelayFunction {
  return { countMin: 1, countMax: 1, apply: ([value = Number.NaN]) => apply(value) };
}

// A map, since an object would also have the names `constructor` and `toString`.
const FUNCTIONS: ReadonlyMap<string, DelayFunction> = new Map([
  ['pow', { countMin: 2, countMax: 2, apply: ([base = Number.NaN, exponent = Number.NaN]) => base ** exponent }],
  ['sqrt', unary(Math.sqrt)],
  ['abs', unary(Math.abs)],
  ['exp', unary(Math.exp)],
  ['floor', unary(Math.floor)],
  ['ceil', unary(Math.ceil)],
  // Rounds halves away from zero; Math.round does so for positive numbers only.
  ['round', unary((value) => Math.sign(value) * Math.round(Math.abs(value)))],
  ['min', { countMin: 1, countMax: Number.POSITIVE_INFINITY, apply: (values) => Math.min(...values) }],
  ['max', { countMin: 1, countMax: Number.POSITIVE_INFINITY, apply: (values) => Math.max(...values) }],
]);

const BINDING_POWER: ReadonlyMap<string, number> = new Map([
  ['+', 1],
  ['-', 1],
  ['*', 2],
  ['/', 2],
]);

/** Parses and checks `text`; throws `DelayExpressionError`. Division by zero is not an error here (see `delayMsOf`). */
export const parseDelayExpression: (text: string) => DelayExpression = memo((text) => {
  if (text.length > LENGTH_MAX) throw new DelayExpressionError(`longer than ${LENGTH_MAX} characters`);
  const parser = new Parser(tokenize(text));
  return { text, steps: parser.parse() };
});

/**
 * The delay in whole milliseconds, 0 to 86 400 000, after a failed attempt; `retried` counts the retries before that
 * attempt. Returns `undefined` if the result is not a finite number; then the default back-off applies.
 */
export function delayMsOf(expression: DelayExpression, retried: number): number | undefined {
  const result = evaluate(expression.steps, retried);
  if (!Number.isFinite(result)) return undefined;
  return result <= 0 ? 0 : Math.min(DELAY_MAX_MS, Math.trunc(result));
}

function evaluate(steps: readonly Step[], retried: number): number {
  const stack: number[] = [];
  const pop = (): number => stack.pop() ?? Number.NaN;
  for (const step of steps) {
    switch (step.kind) {
      case 'number':
        stack.push(step.value);
        break;
      case 'retried':
        stack.push(retried);
        break;
      case 'negate':
        stack.push(-pop());
        break;
      case 'binary': {
        const right = pop();
        stack.push(calculate(step.operator, pop(), right));
        break;
      }
      case 'call':
        stack.push(step.apply(stack.splice(stack.length - step.count)));
        break;
    }
  }
  return pop();
}

function calculate(operator: Operator, left: number, right: number): number {
  switch (operator) {
    case '+':
      return left + right;
    case '-':
      return left - right;
    case '*':
      return left * right;
    case '/':
      return left / right;
  }
}

interface Token {
  kind: 'number' | 'name' | 'sign' | 'end';
  text: string;
  /** Counted from 1. */
  at: number;
}

const TOKEN = /(\d+(?:\.\d+)?)|([A-Za-z_][A-Za-z0-9_]*)|([-+*/(),])/y;

function tokenize(text: string): Token[] {
  const tokens: Token[] = [];
  let at = 0;
  for (;;) {
    while (text[at] === ' ' || text[at] === '\t') at++;
    if (at === text.length) break;
    TOKEN.lastIndex = at;
    const match = TOKEN.exec(text);
    if (match === null) throw new DelayExpressionError(`unexpected character at position ${at + 1}`);
    const [token, number, name] = match;
    const kind = number !== undefined ? 'number' : name !== undefined ? 'name' : 'sign';
    tokens.push({ kind, text: token, at: at + 1 });
    at += token.length;
  }
  tokens.push({ kind: 'end', text: '', at: at + 1 });
  return tokens;
}

/** A Pratt parser: an operator with a higher power binds more strongly; equal powers go left to right. */
class Parser {
  readonly #tokens: Token[];
  readonly #steps: Step[] = [];
  #next = 0;
  #depth = 0;

  constructor(tokens: Token[]) {
    this.#tokens = tokens;
  }

  parse(): Step[] {
    this.#expression(0);
    const rest = this.#take();
    if (rest.kind !== 'end') throw unexpected(rest);
    return this.#steps;
  }

  /** Reads an expression whose operators all bind more strongly than `power`. */
  #expression(power: number): void {
    this.#factor();
    for (;;) {
      const { text } = this.#peek();
      const own = BINDING_POWER.get(text);
      if (own === undefined || own <= power) return;
      this.#take();
      this.#expression(own);
      this.#emit({ kind: 'binary', operator: text as Operator });
    }
  }

  /** At most one sign, as in the contract's grammar: `--1` is refused. */
  #factor(): void {
    const { text } = this.#peek();
    if (text === '+' || text === '-') this.#take();
    this.#primary();
    if (text === '-') this.#emit({ kind: 'negate' });
  }

  #primary(): void {
    const token = this.#take();
    if (token.kind === 'number') this.#emit({ kind: 'number', value: Number(token.text) });
    else if (token.text === 'retried') this.#emit({ kind: 'retried' });
    else if (token.text === '(') this.#nested(() => this.#expression(0));
    else if (token.kind === 'name') this.#call(token);
    else throw unexpected(token);
  }

  #call(name: Token): void {
    const delayFunction = FUNCTIONS.get(name.text);
    if (delayFunction === undefined)
      throw new DelayExpressionError(`unknown name "${name.text}" at position ${name.at}`);
    this.#expect('(');
    let count = 0;
    this.#nested(() => {
      do {
        this.#expression(0);
        count++;
      } while (this.#accept(','));
    });
    if (count < delayFunction.countMin || count > delayFunction.countMax) {
      throw new DelayExpressionError(
        `${name.text} at position ${name.at} takes ${countText(delayFunction)}, not ${count}`,
      );
    }
    this.#emit({ kind: 'call', apply: delayFunction.apply, count });
  }

  /** Reads the content of parentheses, and the closing parenthesis. */
  #nested(inside: () => void): void {
    if (++this.#depth > DEPTH_MAX) throw new DelayExpressionError(`nested more than ${DEPTH_MAX} levels deep`);
    inside();
    this.#expect(')');
    this.#depth--;
  }

  #emit(step: Step): void {
    if (this.#steps.push(step) > STEPS_MAX) throw new DelayExpressionError(`more than ${STEPS_MAX} operations`);
  }

  #peek(): Token {
    // The list ends with an 'end' token, which only the last step of `parse` takes.
    return this.#tokens[this.#next] ?? { kind: 'end', text: '', at: 1 };
  }

  #take(): Token {
    const token = this.#peek();
    this.#next++;
    return token;
  }

  #accept(sign: string): boolean {
    if (this.#peek().text !== sign) return false;
    this.#next++;
    return true;
  }

  #expect(sign: string): void {
    const token = this.#take();
    if (token.text !== sign) throw unexpected(token, sign);
  }
}

function unexpected(token: Token, expected?: string): DelayExpressionError {
  const found = token.kind === 'end' ? 'unexpected end' : `unexpected "${token.text}" at position ${token.at}`;
  return new DelayExpressionError(expected === undefined ? found : `${found}, expected "${expected}"`);
}

function countText(delayFunction: DelayFunction): string {
  if (delayFunction.countMax === Number.POSITIVE_INFINITY) return 'one argument or more';
  return delayFunction.countMin === 1 ? 'one argument' : `${delayFunction.countMin} arguments`;
}
