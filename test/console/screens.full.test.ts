/** Checks of layout, accessibility and content security on every screen of the console, with screenshots. */
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
    '%s: fits a narrow window with the dark theme, is accessible, and violates no content security policy',
    async (name, path, text) => {
      const visit = await scene.visit(NARROW);
      await visit.goTo(path(scene.ids), text);
      await visit.takePicture(`${name.replaceAll(' ', '-')}-narrow-dark`);
      expect(await visit.problems()).toEqual([]);
      await visit.close();
    },
  );

  it('passes the same checks for every second screen in a wide window with the light theme', async () => {
    const visit = await scene.visit({ size: 'wide', theme: 'light' });
    const found: Record<string, unknown> = {};
    for (const [name, path, text] of SCREENS.filter((_, index) => index % 2 === 0)) {
      await visit.goTo(path(scene.ids), text);
      const problems = await visit.problems();
      if (problems.length > 0) found[name] = problems;
    }
    expect(found).toEqual({});
    await visit.close();
  });

  it('passes the same checks for the API page with an open operation', async () => {
    const visit = await scene.visit(NARROW);
    await visit.page.goto(`${scene.url}/docs`);
    await visit.page.getByText('Pauses a flow-control key').click();
    await visit.page.getByLabel('flowControlKey').fill('a key');
    await visit.takePicture('interface-narrow-dark');
    expect(await visit.problems()).toEqual([]);
    await visit.close();
  });
});
