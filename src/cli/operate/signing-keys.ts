/** `waypost signing-keys`: shows and rotates the keys that endpoints verify deliveries with. */
import { confirm, YES_OPTION } from '../http/bulk.ts';
import { commandOf, show } from '../http/verb.ts';

interface SigningKeys {
  current: string;
  next: string;
}

export const signingKeys = commandOf('signing-keys', {
  show: {
    meaning: 'Shows the current and the next key, as lines for an .env file.',
    example: 'signing-keys show',
    async run(call) {
      const found = await call.server.ask<SigningKeys>('getSigningKeys');
      return show(call, found, linesOf(found));
    },
  },
  rotate: {
    meaning:
      'Makes the next key the current one, and creates a new next key. Endpoints that have only the old current key then reject deliveries.',
    options: YES_OPTION,
    example: 'signing-keys rotate --yes',
    async run(call) {
      await confirm(call, 'rotate the signing keys');
      const found = await call.server.ask<SigningKeys>('rotateSigningKeys');
      return show(call, found, linesOf(found));
    },
  },
});

function linesOf({ current, next }: SigningKeys): string {
  return `QSTASH_CURRENT_SIGNING_KEY=${current}\nQSTASH_NEXT_SIGNING_KEY=${next}`;
}
