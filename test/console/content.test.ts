/** Which messages can be published again. */
import { describe, expect, it } from 'vitest';
import { isRedacted } from '../../console/src/screens/message/content.ts';

const MASKED = 'https://ann:***@app.example/';
const HASH = `REDACTED:${'0a'.repeat(32)}`;
const CONTENT = { messageId: 'm', url: 'https://app.example/', method: 'POST', maxRetries: 3, body: { text: 'go' } };

describe('a message', () => {
  it.each([
    { url: MASKED },
    { callback: MASKED },
    { failureCallback: MASKED },
    { header: { 'X-Key': ['open', HASH] } },
    { body: { text: HASH } },
  ])('cannot be sent again with what is not shown as it is: %j', (hidden) => {
    expect(isRedacted({ ...CONTENT, ...hidden } as never)).toBe(true);
  });

  it('can be sent again when all of it is shown', () => {
    expect(
      isRedacted({ ...CONTENT, callback: 'https://ann@app.example/', header: { 'X-Key': ['open'] } } as never),
    ).toBe(false);
  });
});
