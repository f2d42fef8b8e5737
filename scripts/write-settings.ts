/** `npm run settings`: writes docs/settings.md anew from the table of settings. */
import { writeFileSync } from 'node:fs';
import { settingsPage } from '../src/config/page.ts';

writeFileSync(new URL('../docs/settings.md', import.meta.url), settingsPage());
