/** Sends requests to a chosen worker of a server. */
import { request } from 'node:http';
import { DEVELOPMENT_TOKEN } from '../../bench/waypost-process.ts';

interface Reply {
  status: number;
  text: string;
}

/** Over a connection of its own, which the kernel gives to any of the workers. */
export function call(
  method: string,
  url: string,
  headers: Record<string, string> = {},
  token = DEVELOPMENT_TOKEN,
  body?: string,
): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const asked = request(url, { method, agent: false, headers: { authorization: `Bearer ${token}`, ...headers } });
    asked.once('error', reject);
    asked.once('response', (response) => {
      let text = '';
      response.setEncoding('utf8');
      response.on('data', (chunk: string) => {
        text += chunk;
      });
      response.once('end', () => resolve({ status: response.statusCode ?? 0, text }));
    });
    asked.end(body);
  });
}

export function times<T>(count: number, make: (index: number) => T): T[] {
  return Array.from({ length: count }, (_, index) => make(index));
}
