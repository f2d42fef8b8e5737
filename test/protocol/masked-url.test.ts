/** How URLs with a password are shown. */
import { describe, expect, it } from 'vitest';
import { isMasked, maskPassword } from '../../src/protocol/urls/masked-url.ts';

describe('maskPassword', () => {
  it.each([
    ['https://ann:secret@app.example/in?a=b', 'https://ann:***@app.example/in?a=b'],
    ['HTTP://:secret@app.example', 'HTTP://:***@app.example'],
    ['https://ann:se@cr:et@app.example:8443/', 'https://ann:***@app.example:8443/'],
    ['https://ann@home:secret@app.example/', 'https://ann@home:***@app.example/'],
    ['https://ann:%C3%A9@[::1]:8080/a@b:c@d', 'https://ann:***@[::1]:8080/a@b:c@d'],
    ['https://ann:secret@app.example\\x@y', 'https://ann:***@app.example\\x@y'],
  ])('has *** for the password in %s', (url, shown) => {
    expect(maskPassword(url)).toBe(shown);
    expect(isMasked(shown)).toBe(true);
    expect(new URL(shown).host).toBe(new URL(url).host);
  });

  it.each([
    'https://app.example/in',
    'https://ann@app.example/',
    'https://ann:@app.example/',
    'https://app.example:8080/a:b@c',
    'https://app.example?x=a:b@c',
    'https://[::1]:8080/@',
    'a text: me@app.example',
  ])('is unchanged without a password: %s', (url) => {
    expect(maskPassword(url)).toBe(url);
    expect(isMasked(url)).toBe(false);
  });
});
