/** Every screen of the console in a narrow window, with pictures to look at: in `PICTURES`. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Look, SCREENS, Scene } from './support/screens.ts';
import { browserObstacle } from './support/visit.ts';

/** What the quick tests, where half of the screens are wide and light, do not look at in every screen. */
const LOOKS: readonly Look[] = [{ size: 'narrow', theme: 'dark' }];

const obstacle = browserObstacle();

describe.skipIf(obstacle !== undefined)(`the console${obstacle === undefined ? '' : ` (skipped: ${obstacle})`}`, () => {
  let scene: Scene;
  beforeAll(async () => {
    scene = await Scene.open();
  });
  afterAll(() => scene?.close());

  it.each(SCREENS.flatMap(([name, path, text]) => LOOKS.map((look) => ({ name, path, text, ...look }))))(
    '$name, $size, $theme: fits its window, shuts nobody out and breaks no rule of the browser',
    async ({ name, path, text, ...look }) => {
      const visit = await scene.visit(look);
      await visit.goTo(path(scene.made), text);
      await visit.takePicture(`${name.replaceAll(' ', '-')}-${look.size}-${look.theme}`);
      expect(await visit.problems()).toEqual([]);
      await visit.close();
    },
  );

  it('the page of the interface does so too, with an operation open', async () => {
    const visit = await scene.visit({ size: 'narrow', theme: 'dark' });
    await visit.page.goto(`${scene.url}/docs`);
    await visit.page.getByText('Pauses a flow-control key').click();
    await visit.page.getByLabel('flowControlKey').fill('a key');
    await visit.takePicture('interface-narrow-dark');
    expect(await visit.problems()).toEqual([]);
    await visit.close();
  });
});
