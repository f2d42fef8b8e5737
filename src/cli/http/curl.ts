/** Parses a curl command, as browsers and proxies export a request, into the request that curl would send. */
import { CommandFailed, EXIT } from '../command.ts';

export interface CurlRequest {
  headers: [name: string, value: string][];
  body: string;
  url?: string;
}

const DATA: ReadonlySet<string> = new Set(['-d', '--data', '--data-raw', '--data-binary', '--data-ascii', '--json']);
/** Options whose values are ignored. Without this list, such a value could be mistaken for the URL. */
const VALUED: ReadonlySet<string> = new Set([
  ...['-X', '--request', '-A', '--user-agent', '-b', '--cookie', '-e', '--referer', '-o', '--output', '-u', '--user'],
  ...['-x', '--proxy', '-m', '--max-time', '--connect-timeout'],
]);

/** Throws `CommandFailed` for a body in a file, which is not read. */
export function readCurl(line: string): CurlRequest {
  const [, ...words] = wordsOf(line).flatMap(separate);
  const request: CurlRequest = { headers: [], body: '' };
  const data: string[] = [];
  while (words.length > 0) {
    const word = words.shift() ?? '';
    if (word === '-H' || word === '--header') {
      const [, name = '', value = ''] = /^([^:]*):\s*(.*)$/s.exec(words.shift() ?? '') ?? [];
      request.headers.push([name, value]);
    } else if (DATA.has(word)) {
      const text = words.shift() ?? '';
      if (text.startsWith('@') && word !== '--data-raw')
        throw new CommandFailed(
          `${word} ${text}: the body is in a file; give it with --signature and --file`,
          EXIT.usage,
        );
      data.push(text);
    } else if (word === '--url') request.url = words.shift() ?? '';
    else if (VALUED.has(word)) words.shift();
    else if (/^https?:/i.test(word)) request.url = word;
  }
  return { ...request, body: data.join('&') };
}

/** Splits a word such as `-HX-Shop: eu` or `--url=…` into the option and its value. */
function separate(word: string): string[] {
  const [, flag, value] = /^(-[HdXAbeoux]|--[a-z-]+(?==))=?(.+)$/s.exec(word) ?? [];
  return flag !== undefined && value !== undefined ? [flag, value] : [word];
}

const ESCAPES: Readonly<Record<string, string>> = { n: '\n', r: '\r', t: '\t', a: '\x07', b: '\b', f: '\f', v: '\v' };

/** Splits a line into words like a POSIX shell. Also accepts the quotes `$'…'` of bash, which browsers write. */
function wordsOf(line: string): string[] {
  const part = /\$'((?:[^'\\]|\\.)*)'|'([^']*)'|"((?:[^"\\]|\\.)*)"|\\(\r?\n)|\\(.)|(\s+)|([^\s'"\\]+)/gs;
  const words: string[] = [];
  let word: string | undefined;
  for (const [, ansi, plain, double, joined, escaped, space, bare] of line.matchAll(part)) {
    if (space !== undefined) {
      if (word !== undefined) words.push(word);
      word = undefined;
    } else if (joined === undefined) {
      const inDouble = double?.replace(/\\([$`"\\]|\r?\n)/g, (_, kept: string) => kept.trim());
      word = `${word ?? ''}${ansi === undefined ? (inDouble ?? plain ?? escaped ?? bare) : unescaped(ansi)}`;
    }
  }
  return word === undefined ? words : [...words, word];
}

function unescaped(text: string): string {
  return text.replace(
    /\\(?:x([0-9a-f]{1,2})|u([0-9a-f]{1,4})|([0-7]{1,3})|(.))/gis,
    (_, hex?: string, unicode?: string, octal?: string, letter = '') =>
      hex || unicode || octal
        ? String.fromCharCode(Number.parseInt(hex ?? unicode ?? octal ?? '', octal ? 8 : 16))
        : (ESCAPES[letter] ?? letter),
  );
}
