import { describe, expect, it } from 'vitest';
import type { Content } from '../../console/src/screens/message/content.ts';
import { changesOf, formOf } from '../../console/src/screens/message/replay-changes.ts';

const HIDDEN = `REDACTED:${'0'.repeat(64)}`;
const CONTENT: Content = {
  messageId: 'msg_1',
  url: 'https://a.example/',
  method: 'POST',
  maxRetries: 3,
  header: { A: ['1'], Secret: [HIDDEN] },
  body: { text: HIDDEN },
  queueName: 'queue',
};

describe('the changes of a replay', () => {
  it('are none when the form was not edited', () => {
    const form = formOf(CONTENT);
    expect(changesOf(form, form)).toEqual({});
  });

  it('are the edited fields; a header whose line is gone is removed', () => {
    const like = formOf(CONTENT);
    const form = { method: 'PUT', destination: 'https://b.example/', retries: '5', queueName: '', body: 'b' };
    expect(changesOf(like, { ...form, headers: 'B: 2\nSecret: again' })).toEqual({
      destination: 'https://b.example/',
      queue: null,
      body: 'b',
      headers: {
        'Upstash-Forward-B': '2',
        'Upstash-Forward-Secret': 'again',
        'Upstash-Forward-A': null,
        'Upstash-Method': 'PUT',
        'Upstash-Retries': '5',
      },
    });
  });

  it('leave redacted values empty, to be given again', () => {
    expect(formOf(CONTENT)).toMatchObject({ body: '', headers: 'A: 1\nSecret: ' });
  });
});
