/** How does a test look at the console? In a real Chromium, at a server of its own, with everything noted that went wrong in the page. */
import { mkdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { type Browser, chromium, type Page } from 'playwright-core';
import { obstacleTo } from '../../support/debian.ts';

/** Git does not see it. */
const PICTURES = fileURLToPath(new URL('../../../coverage/console/', import.meta.url));

export const CHROMIUM = {
  path: '/usr/bin/chromium',
  flags: [
    ...['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking'],
    ...['--disable-component-update', '--disable-sync'],
  ],
};
const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** For the page. Both widths are rounded. */
const OVERFULL = `[...document.querySelectorAll('[role=row], [role=cell], dialog > *')]
  .filter((place) => getComputedStyle(place).overflowX !== 'hidden' && place.scrollWidth > place.clientWidth + 1)
  .map(({ role, localName, textContent }) => (role ?? localName) + ' too narrow for ' + textContent.slice(0, 160))`;

/** For the page. A table may be wider than the window, but its buttons stay in sight. */
const OUT_OF_SIGHT = `[...document.querySelectorAll('table button')]
  .filter((button) => button.getBoundingClientRect().right > innerWidth + 1)
  .map(({ textContent }) => 'out of sight: ' + textContent)`;

export const SIZES = { wide: { width: 1440, height: 900 }, narrow: { width: 390, height: 844 } } as const;

/** Why there is no browser here; undefined when there is. Only a machine without apt may go without. */
export function browserObstacle(): string | undefined {
  const obstacle = obstacleTo('chromium');
  if (obstacle !== undefined && obstacleTo('apt-get') === undefined) throw new Error(obstacle);
  return obstacle;
}

export function openBrowser(): Promise<Browser> {
  return chromium.launch({ executablePath: CHROMIUM.path, args: CHROMIUM.flags });
}

export interface VisitOptions {
  url: string;
  size?: keyof typeof SIZES;
  theme?: 'light' | 'dark';
  /** For a server that asks for one. */
  token?: string;
}

/** One tab of its own: nothing is shared with another visit. */
export class Visit {
  readonly page: Page;
  /** Errors of scripts, and what the content security policy refused. */
  readonly faults: string[] = [];
  readonly #url: string;

  private constructor(page: Page, url: string) {
    this.page = page;
    this.#url = url;
    page.on('pageerror', (error) => this.faults.push(`${error.name}: ${error.message}`));
    page.on('console', (message) => {
      if (/content security policy|refused to/i.test(message.text())) this.faults.push(message.text());
    });
    page.on('dialog', (dialog) => {
      this.faults.push(`a script of a field ran: ${dialog.message()}`);
      void dialog.dismiss();
    });
  }

  static async open(browser: Browser, { url, size = 'wide', theme = 'light', token }: VisitOptions): Promise<Visit> {
    const context = await browser.newContext({ viewport: SIZES[size], colorScheme: theme });
    if (token !== undefined) {
      await context.addInitScript((value) => sessionStorage.setItem('waypost.token', value), token);
    }
    return new Visit(await context.newPage(), url);
  }

  /** `path` below /console. Waits until the screen shows `text`, and nothing of it is still on its way. */
  async goTo(path: string, text?: string): Promise<void> {
    await this.page.goto(`${this.#url}/console${path}`);
    await this.page.locator('h1').first().waitFor();
    if (text !== undefined) await this.page.getByText(text).filter({ visible: true }).first().waitFor();
    await this.page.getByText('Loading…').first().waitFor({ state: 'hidden' });
  }

  /** What is wrong with what is shown: serious findings of axe, what does not fit, and faults since the last look. */
  async problems(): Promise<string[]> {
    const overflow = Number(await this.page.evaluate('document.documentElement.scrollWidth - innerWidth'));
    const faults = this.faults.splice(0);
    return [
      ...faults,
      ...(overflow > 0 ? [`${overflow} px wider than the window`] : []),
      ...(await this.#overfull()),
      ...(await this.page.evaluate<string[]>(OUT_OF_SIGHT)),
      ...(await this.#barriers()),
    ];
  }

  /** Texts that run out of their place where the window does not grow: they are cut, or lie over others. */
  #overfull(): Promise<string[]> {
    return this.page.evaluate(OVERFULL);
  }

  /** One line each. */
  async #barriers(): Promise<string[]> {
    await this.page.evaluate(AXE);
    const found = await this.page.evaluate(async () => {
      const { axe } = globalThis as unknown as { axe: { run: (of: object) => Promise<AxeResults> } };
      return (await axe.run({ resultTypes: ['violations'] })).violations;
    });
    return found
      .filter(({ impact }) => impact === 'serious' || impact === 'critical')
      .map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 160)).join(' | ')}`);
  }

  async takePicture(name: string): Promise<void> {
    mkdirSync(PICTURES, { recursive: true });
    await this.page.screenshot({ path: `${PICTURES}${name}.png`, fullPage: true });
  }

  close(): Promise<void> {
    return this.page.context().close();
  }
}

interface AxeResults {
  violations: { id: string; impact: string | null; nodes: { html: string }[] }[];
}
