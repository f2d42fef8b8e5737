/** Folders for the files of a test. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';

/** A new folder that is removed after the test that runs, and after its `afterEach`. */
export function testFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'waypost-test-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}
