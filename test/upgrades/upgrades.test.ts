/** What the oldest and the newest of the earlier versions left behind; upgrades.full.test.ts has those between. */
import { VERSIONS } from './fixture.ts';
import { describeUpgradesFrom } from './opened.ts';

describeUpgradesFrom(VERSIONS.filter((_, at) => at === 0 || at === VERSIONS.length - 1));
