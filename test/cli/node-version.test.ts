import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { nodeWarning } from '../../src/cli/node-version.ts';

it.each(['20.20.2', '22.19.0', '24.20.0', '24.3.9'])('warns of Node %s, which has known faults', (version) => {
  expect(nodeWarning(version)).toContain(`Node ${version} has known faults`);
});

it.each(['24.21.0', '24.22.1', '24.100.0', '26.0.0'])('is content with Node %s', (version) => {
  expect(nodeWarning(version)).toBeUndefined();
});

it('is content with the Node that a checkout brings', () => {
  const lock = JSON.parse(readFileSync(new URL('../../package-lock.json', import.meta.url), 'utf8'));
  expect(nodeWarning(lock.packages['node_modules/node'].version)).toBeUndefined();
});

it('asks for the same Node in package.json, in the README and at the start', () => {
  const read = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');
  const [, needed = ''] = /^>=(\d+\.\d+)$/.exec(JSON.parse(read('package.json')).engines.node) ?? [];
  expect(read('README.md')).toContain(`Node.js ${needed} or newer`);
  expect(read('CONTRIBUTING.md')).toContain(`Node.js ${needed} or newer`);
  expect(read('bin/waypost.js')).toContain(`${needed} or newer is required`);
});
