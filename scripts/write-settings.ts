/** `npm run settings`: regenerates docs/settings.md from the table of settings. */
import { writeFileSync } from 'node:fs';
import { settingsPage } from '../src/config/page.ts';

writeFileSync(new URL('../docs/settings.md', import.meta.url), settingsPage());
