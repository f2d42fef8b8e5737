/** What every screen of the console keeps to, in a real browser with real data: each once. All looks: screens.full.test.ts. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Look, SCREENS, Scene } from './support/screens.ts';
import { browserObstacle } from './support/visit.ts';

const LOOKS: readonly Look[] = [
  { size: 'wide', theme: 'light' },
  { size: 'narrow', theme: 'dark' },
];

const obstacle = browserObstacle();

describe.skipIf(obstacle !== undefined)(`the console${obstacle === undefined ? '' : ` (skipped: ${obstacle})`}`, () => {
  let scene: Scene;
  beforeAll(async () => {
    scene = await Scene.open();
  });
  afterAll(() => scene?.close());

  it.each(LOOKS)(
    'fits its $size window, shuts nobody out and breaks no rule of the browser, in $theme',
    async (look) => {
      const visit = await scene.visit(look);
      const screens = SCREENS.filter((_, index) => LOOKS[index % LOOKS.length] === look);
      const found: Record<string, unknown> = {};
      for (const [name, path, text] of screens) {
        await visit.goTo(path(scene.made), text);
        const problems = await visit.problems();
        if (problems.length > 0) found[name] = problems;
      }
      expect(found).toEqual({});
      await visit.close();
    },
  );
});
