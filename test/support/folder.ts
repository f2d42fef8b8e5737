/** Creates temporary folders for tests. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';

/** Creates a folder that is removed after the current test and its `afterEach`. */
export function testFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'waypost-test-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}
