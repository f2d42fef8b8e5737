import { serve } from '@upstash/workflow/express';
import express from 'express';

const app = express();
app.use(express.json({ limit: '20mb' })); // each call contains all recorded results

const order = serve(async (context) => {
  const { order } = context.requestPayload;
  const invoice = await context.run('write the invoice', () => {
    console.log(`invoice ${order}`);
    return `invoice ${order}`;
  });
  const payment = await context.waitForEvent('wait for the payment', `paid-${order}`, {
    timeout: '7d',
  });
  if (payment.timeout) return;
  await context.run('send the parcel', () => console.log(`${invoice} paid by ${payment.eventData.by}, on its way`));
});

app.use('/order', order);
app.listen(Number(process.env.PORT ?? 3000), '127.0.0.1', () => console.log('ready'));
