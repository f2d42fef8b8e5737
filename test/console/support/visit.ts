/** Opens the console in a real Chromium, and records errors of the page. */
import { mkdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { type Browser, chromium, type Page } from 'playwright-core';
import { obstacleTo } from '../../support/debian.ts';

/** Ignored by Git. */
const PICTURES = fileURLToPath(new URL('../../../coverage/console/', import.meta.url));

export const CHROMIUM = {
  path: '/usr/bin/chromium',
  flags: [
    ...['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking'],
    ...['--disable-component-update', '--disable-sync'],
  ],
};
const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** Runs in the page: finds elements whose text overflows. The tolerance of 1 px allows for rounded widths. */
const OVERFLOWING = `[...document.querySelectorAll('[role=row], [role=cell], dialog > *')]
  .filter((box) => getComputedStyle(box).overflowX !== 'hidden' && box.scrollWidth > box.clientWidth + 1)
  .map(({ role, localName, textContent }) => (role ?? localName) + ' too narrow for ' + textContent.slice(0, 160))`;

/** Runs in the page: a table may be wider than the window, but its buttons must stay visible. */
const HIDDEN_BUTTONS = `[...document.querySelectorAll('table button')]
  .filter((button) => button.getBoundingClientRect().right > innerWidth + 1)
  .map(({ textContent }) => 'out of sight: ' + textContent)`;

export const SIZES = { wide: { width: 1440, height: 900 }, narrow: { width: 390, height: 844 } } as const;

/** The reason why there is no browser; undefined if there is one. Throws on a machine with apt, where one can be installed. */
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
  /** The token to log in with, for a server that needs one. */
  token?: string;
}

/** A tab in its own browser context, which shares nothing with other visits. */
export class Visit {
  readonly page: Page;
  /** Errors of scripts, and violations of the content security policy. */
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

  /** Opens `path` below /console, and waits until the screen shows `text` and has loaded its data. */
  async goTo(path: string, text?: string): Promise<void> {
    await this.page.goto(`${this.#url}/console${path}`);
    await this.page.locator('h1').first().waitFor();
    if (text !== undefined) await this.page.getByText(text).filter({ visible: true }).first().waitFor();
    await this.page.getByText('Loading…').first().waitFor({ state: 'hidden' });
  }

  /** The problems of the page: serious findings of axe, overflowing content, and faults since the last call. */
  async problems(): Promise<string[]> {
    const overflow = Number(await this.page.evaluate('document.documentElement.scrollWidth - innerWidth'));
    const faults = this.faults.splice(0);
    return [
      ...faults,
      ...(overflow > 0 ? [`${overflow} px wider than the window`] : []),
      ...(await this.#overflowing()),
      ...(await this.page.evaluate<string[]>(HIDDEN_BUTTONS)),
      ...(await this.#accessibilityViolations()),
    ];
  }

  /** Texts that overflow their cell or dialog without widening the window: they are cut off or overlap others. */
  #overflowing(): Promise<string[]> {
    return this.page.evaluate(OVERFLOWING);
  }

  /** Serious accessibility violations, as one line each. */
  async #accessibilityViolations(): Promise<string[]> {
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
