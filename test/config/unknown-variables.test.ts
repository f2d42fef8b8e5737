import { expect, test } from 'vitest';
import { variableOf } from '../../src/config/setting.ts';
import { listSettings } from '../../src/config/table.ts';
import { unknownVariables } from '../../src/config/unknown-variables.ts';

test('a variable that is no setting is found, with the setting that was meant', () => {
  expect(unknownVariables({ WAYPOST_PROT: '1', WAYPOST_COLOUR: 'red', PATH: '/bin', WAYPOSTPORT: '1' })).toEqual([
    { name: 'WAYPOST_COLOUR' },
    { name: 'WAYPOST_PROT', suggestion: 'WAYPOST_PORT' },
  ]);
});

test('only a secret can be given as a file', () => {
  const env = { WAYPOST_ENCRYPTION_KEY_FILE: '/run/key', WAYPOST_PORT_FILE: '/run/port' };
  expect(unknownVariables(env).map(({ name }) => name)).toEqual(['WAYPOST_PORT_FILE']);
});

test('no setting is unknown', () => {
  expect(unknownVariables(Object.fromEntries(listSettings().map(({ name }) => [variableOf(name), '1'])))).toEqual([]);
});

test('what is empty is not set, and what Kubernetes says of a service is not meant for us', () => {
  const env = {
    WAYPOST_PROT: ' ',
    WAYPOST_SERVICE_HOST: '10.0.0.1',
    WAYPOST_SERVICE_PORT_HTTP: '80',
    WAYPOST_PORT: 'tcp://10.0.0.1:80',
    WAYPOST_PORT_80_TCP: 'tcp://10.0.0.1:80',
    WAYPOST_PORT_80_TCP_ADDR: '10.0.0.1',
    WAYPOST_HEADLESS_SERVICE_PORT: '80',
    WAYPOST_HEADLESS_PORT: 'tcp://10.0.0.1:80',
  };
  expect(unknownVariables(env)).toEqual([]);
});
