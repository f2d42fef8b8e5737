import { describe, expect, it } from 'vitest';
import { readArguments } from '../../src/config/arguments.ts';

const KNOWN = new Map([
  ['file', 'needed'],
  ['f', 'needed'],
  ['queue-name', 'needed'],
  ['all', 'none'],
  ['memory', 'attached'],
] as const);

const read = (...args: string[]) => readArguments(args, KNOWN);

describe('the arguments of a command', () => {
  it('are words and options in any order, and only words after "--"', () => {
    const { words, options } = read('a', '--all', 'b', '--', '--file');
    expect([words, options.map(({ name }) => name)]).toEqual([['a', 'b', '--file'], ['all']]);
  });

  it.each([
    [['--file', '--all'], 'file', '--all'],
    [['--file=a=b'], 'file', 'a=b'],
    [['-f', 'path'], 'f', 'path'],
    [['-f=path'], 'f', 'path'],
    [['--queueName', 'q'], 'queue-name', 'q'],
    [['--memory', 'word'], 'memory', undefined],
    [['--memory=false'], 'memory', 'false'],
  ] as const)('%j give an option its value', (args, name, value) => {
    expect(read(...args).options).toEqual([expect.objectContaining({ name, value })]);
  });

  it.each([
    [['--file'], '--file: needs a value'],
    [['--all=1'], '--all: takes no value'],
    [['--queuName=a'], '--queuName: there is no such option; did you mean --queue-name?'],
    [['-xyz'], '-xyz: there is no such option'],
  ] as const)('%j are refused', (args, problem) => {
    expect(read(...args).problems).toEqual([problem]);
  });
});
