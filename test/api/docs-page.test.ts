/** Checks that the page of the interface is complete, well-formed and self-contained. */
import { expect, it } from 'vitest';
import { docsPage } from '../../scripts/docs-page.ts';
import { writeOpenApi } from '../../src/api/openapi.ts';
import { describedRoutes } from '../../src/api/routes.ts';

const document = writeOpenApi(describedRoutes());
const text = docsPage(document);

it('has every operation and every shape, and of the network loads only the style and script of this server', () => {
  for (const [path, methods] of Object.entries(document.paths)) {
    expect(text).toContain(path);
    for (const { operationId } of Object.values(methods)) expect(text).toContain(`id="operation-${operationId}"`);
  }
  for (const name of Object.keys(document.components.schemas)) expect(text).toContain(`id="shape-${name}"`);
  const own =
    '<link rel="stylesheet" href="/console/docs.css">\n<script type="module" src="/console/docs.js"></script>';
  const [before, ...after] = text.split(own);
  expect(after).toHaveLength(1);
  expect(`${before}${after}`).not.toMatch(/<script|<link|<img|<style| style=|(?:src|href)="?https?:/);
});

it('links only to what is on it', () => {
  const ids = [...text.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id);
  const links = [...text.matchAll(/href="#([^"]+)"/g)].map(([, id]) => id);
  expect(new Set(ids).size).toBe(ids.length);
  expect(links.filter((link) => !ids.includes(link))).toEqual([]);
});

it('closes every element where it has to', () => {
  const open: string[] = [];
  const wrong: string[] = [];
  for (const [, slash, name = ''] of text.matchAll(/<(\/?)([a-z][a-z0-9]*)/g)) {
    if (name === 'meta' || name === 'link') continue;
    if (slash === '') open.push(name);
    else if (open.pop() !== name) wrong.push(`</${name}>`);
    // A paragraph ends where a block begins, whatever closes it later.
    if (/^(div|table|pre)$/.test(name) && slash === '' && open.includes('p')) wrong.push(`<${name}> in <p>`);
  }
  expect(wrong).toEqual([]);
  expect(open).toEqual([]);
});

it('escapes what it shows', () => {
  expect(text).toContain('Upstash-Forward-&lt;Name&gt;');
  expect(text).not.toContain('<Name>');
});
