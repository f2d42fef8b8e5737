import { expect, it } from 'vitest';
import { nodeWarning } from '../../src/cli/node-version.ts';

it.each(['20.20.2', '24.21.0', '24.22.0'])('warns of Node %s, which has known faults', (version) => {
  expect(nodeWarning(version)).toContain(`Node ${version} has known faults`);
});

it.each(['24.22.1', '24.22.10', '24.100.0', '26.0.0'])('is content with Node %s', (version) => {
  expect(nodeWarning(version)).toBeUndefined();
});
