/** Whether a message can be published again: not if the server hides a part of it. */
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
  ])('cannot be sent again if a value is redacted or masked: %j', (hidden) => {
    expect(isRedacted({ ...CONTENT, ...hidden } as never)).toBe(true);
  });

  it('can be sent again if no value is hidden', () => {
    expect(
      isRedacted({ ...CONTENT, callback: 'https://ann@app.example/', header: { 'X-Key': ['open'] } } as never),
    ).toBe(false);
  });
});
