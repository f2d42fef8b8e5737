/** Every screen of the console, with pictures to look at: in `PICTURES`. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { SCREENS, Scene } from './support/screens.ts';
import { browserObstacle } from './support/visit.ts';

const NARROW = { size: 'narrow', theme: 'dark' } as const;

const obstacle = browserObstacle();

describe.skipIf(obstacle !== undefined)(`the console${obstacle === undefined ? '' : ` (skipped: ${obstacle})`}`, () => {
  let scene: Scene;
  beforeAll(async () => {
    scene = await Scene.open();
  });
  afterAll(() => scene?.close());

  it.each(SCREENS)(
    '%s: fits a narrow window, in the dark, shuts nobody out and breaks no rule of the browser',
    async (name, path, text) => {
      const visit = await scene.visit(NARROW);
      await visit.goTo(path(scene.made), text);
      await visit.takePicture(`${name.replaceAll(' ', '-')}-narrow-dark`);
      expect(await visit.problems()).toEqual([]);
      await visit.close();
    },
  );

  it('every other one does so in a wide window too, in the light', async () => {
    const visit = await scene.visit({ size: 'wide', theme: 'light' });
    const found: Record<string, unknown> = {};
    for (const [name, path, text] of SCREENS.filter((_, index) => index % 2 === 0)) {
      await visit.goTo(path(scene.made), text);
      const problems = await visit.problems();
      if (problems.length > 0) found[name] = problems;
    }
    expect(found).toEqual({});
    await visit.close();
  });

  it('the page of the interface does so too, with an operation open', async () => {
    const visit = await scene.visit(NARROW);
    await visit.page.goto(`${scene.url}/docs`);
    await visit.page.getByText('Pauses a flow-control key').click();
    await visit.page.getByLabel('flowControlKey').fill('a key');
    await visit.takePicture('interface-narrow-dark');
    expect(await visit.problems()).toEqual([]);
    await visit.close();
  });
});
