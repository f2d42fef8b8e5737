import { verifySignatureAppRouter } from '@upstash/qstash/nextjs';

// Reads QSTASH_CURRENT_SIGNING_KEY and QSTASH_NEXT_SIGNING_KEY.
export const POST = verifySignatureAppRouter(async (request: Request) => {
  const { email } = (await request.json()) as { email: string };
  console.log(`welcome ${email}`);
  return new Response();
});
