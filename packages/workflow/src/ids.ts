/** Creates the ids that the endpoint and the client assign. */
const CHARACTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';

export function runIdOf(id: string = randomId(21)): string {
  return `wfr_${id}`;
}

export function eventId(): string {
  return `evt_${randomId(15)}`;
}

function randomId(length: number): string {
  const bytes = crypto.getRandomValues(new Uint8Array(length));
  return Array.from(bytes, (byte) => CHARACTERS[byte % 64]).join('');
}
