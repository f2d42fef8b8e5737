/**
 * The four published development accounts (contract M 2.3). The tokens of these accounts are public, so only `waypost
 * dev` accepts them.
 */
import { hashToken, mintToken } from '../protocol/token.ts';

export interface DevelopmentAccount {
  name: string;
  token: string;
  signingKeys: { current: string; next: string };
}

/** The four accounts. `waypost dev` prints the variables of the first account. */
export const DEVELOPMENT_ACCOUNTS: readonly [DevelopmentAccount, ...DevelopmentAccount[]] = [
  {
    name: 'defaultUser',
    token: mintToken('defaultUser', 'defaultPassword'),
    signingKeys: { current: 'sig_7kYjw48mhY7kAjqNGcy6cr29RJ6r', next: 'sig_5ZB6DVzB1wjE8S6rZ7eenA8Pdnhs' },
  },
  {
    name: 'testUser1',
    token: mintToken('testUser1', 'testPassword'),
    signingKeys: { current: 'sig_7GVPjvuwsfqF65iC8fSrs1dfYruM', next: 'sig_5NoELc3EFnZn4DVS5bDs2Nk4b7Ua' },
  },
  {
    name: 'testUser2',
    token: mintToken('testUser2', 'testPassword'),
    signingKeys: { current: 'sig_6jWGaWRxHsw4vMSPJprXadyvrybF', next: 'sig_7qHbvhmahe5GwfePDiS5Lg3pi6Qx' },
  },
  {
    name: 'testUser3',
    token: mintToken('testUser3', 'testPassword'),
    signingKeys: { current: 'sig_5T8FcSsynBjn9mMLBsXhpacRovJf', next: 'sig_7GFR4YaDshFcqsxWRZpRB161jguD' },
  },
];

/** Whether a project of this name belongs to `waypost dev`. */
export function isDevelopmentProject(name: string): boolean {
  return DEVELOPMENT_ACCOUNTS.some((account) => account.name === name);
}

/** Whether the token with this hash is one of the published tokens. */
export function isDevelopmentToken(tokenHash: string): boolean {
  return DEVELOPMENT_ACCOUNTS.some(({ token }) => hashToken(token) === tokenHash);
}
