/** Encodes and decodes base64 of UTF-8 text, with functions that every runtime provides. */

export function decodeBase64(text: string): string {
  const binary = atob(text);
  // biome-ignore lint/suspicious/noControlCharactersInRegex: ASCII needs no decoding
  if (/^[\x00-\x7f]*$/.test(binary)) return binary;
  return new TextDecoder().decode(Uint8Array.from(binary, (character) => character.charCodeAt(0)));
}

/** Decodes a segment of a JWT. */
export function decodeBase64Url(text: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(atob(text.replaceAll('-', '+').replaceAll('_', '/')), (character) => character.charCodeAt(0));
}

export function encodeBase64Url(bytes: Uint8Array): string {
  let binary = '';
  for (const byte of bytes) binary += String.fromCharCode(byte);
  return btoa(binary).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
}
