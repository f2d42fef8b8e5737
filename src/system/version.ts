/** The release of this program. */
import { readFileSync } from 'node:fs';

/** Reads the version from package.json, which is two folders up from both the sources and the compiled files. */
export function readVersion(): string {
  const text = readFileSync(new URL('../../package.json', import.meta.url), 'utf8');
  return (JSON.parse(text) as { version: string }).version;
}
