import { Client } from '@upstash/qstash';

const client = new Client(); // reads QSTASH_URL and QSTASH_TOKEN

export async function POST(request: Request): Promise<Response> {
  const { email } = (await request.json()) as { email: string };
  const url = new URL('/api/welcome', request.url).href;
  const { messageId } = await client.publishJSON({ url, body: { email }, retries: 5 });
  return Response.json({ messageId }, { status: 202 });
}
