/** What the versions between the oldest and the newest of the earlier ones left behind. */
import { VERSIONS } from './fixture.ts';
import { describeUpgradesFrom } from './opened.ts';

describeUpgradesFrom(VERSIONS.slice(1, -1));
