/** `waypost signing-keys`: the keys that endpoints verify deliveries with. */
import { agreeOn, YES } from '../http/bulk.ts';
import { commandOf, show } from '../http/verb.ts';

interface SigningKeys {
  current: string;
  next: string;
}

export const signingKeys = commandOf('signing-keys', {
  show: {
    meaning: 'The current and the next key, as lines for an .env.',
    example: 'signing-keys show',
    async run(call) {
      const found = await call.server.ask<SigningKeys>('getSigningKeys');
      return show(call, found, linesOf(found));
    },
  },
  rotate: {
    meaning:
      'Makes the next key the current one, and a new next key. Endpoints that know only the old current key then refuse.',
    options: YES,
    example: 'signing-keys rotate --yes',
    async run(call) {
      await agreeOn(call, 'rotate the signing keys');
      const found = await call.server.ask<SigningKeys>('rotateSigningKeys');
      return show(call, found, linesOf(found));
    },
  },
});

function linesOf({ current, next }: SigningKeys): string {
  return `QSTASH_CURRENT_SIGNING_KEY=${current}\nQSTASH_NEXT_SIGNING_KEY=${next}`;
}
