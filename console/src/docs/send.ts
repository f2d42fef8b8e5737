/** Sends a request to this server and shows the response with its headers. Requests that may change data need confirmation. */

import { element } from './element.ts';
import { type ExampleRequest, headersOf, targetOf } from './example-request.ts';

/** A longer text would render slowly. */
const SHOWN_LENGTH_MAX = 200_000;

interface SendOptions {
  token: string;
  output: HTMLElement;
  signal: AbortSignal;
}

export async function send(request: ExampleRequest, { token, output, signal }: SendOptions): Promise<void> {
  const { method, body, isPublic } = request;
  const target = targetOf(request);
  if (method !== 'GET' && method !== 'HEAD' && !(await confirm(`${method} ${location.origin}${target}`))) return;
  output.hidden = false;
  output.textContent = '…';
  try {
    const response = await fetch(target, {
      method,
      headers: { ...headersOf(request), ...(!isPublic && { Authorization: `Bearer ${token}` }) },
      ...(body !== undefined && { body }),
      signal,
    });
    const head = [
      `HTTP ${response.status} ${response.statusText}`,
      ...[...response.headers].map((line) => line.join(': ')),
    ];
    output.textContent = `${head.join('\n')}\n\n`;
    await show(response, output);
  } catch (error) {
    if (!signal.aborted) output.textContent = `No response: ${String(error)}`;
  }
}

/** Shows each chunk as it arrives, since some responses never end. */
async function show({ body, headers }: Response, output: HTMLElement): Promise<void> {
  const head = output.textContent ?? '';
  let text = '';
  const reader = body?.pipeThrough(new TextDecoderStream()).getReader();
  for (let chunk = await reader?.read(); chunk?.value !== undefined; chunk = await reader?.read()) {
    text += chunk.value;
    output.textContent = head + text;
    if (text.length > SHOWN_LENGTH_MAX) return reader?.cancel();
  }
  if (headers.get('content-type') !== 'application/json' || text === '') return;
  output.textContent = head + JSON.stringify(JSON.parse(text), null, 2);
}

function confirm(request: string): Promise<boolean> {
  const yes = element('button', { type: 'button' }, 'Send');
  const no = element('button', { type: 'button' }, 'Cancel');
  const dialog = element(
    'dialog',
    { ariaLabel: 'Send the request' },
    element('p', {}, element('code', {}, request)),
    yes,
    ' ',
    no,
  );
  document.body.append(dialog);
  dialog.showModal();
  return new Promise((resolve) => {
    yes.addEventListener('click', () => dialog.close('send'));
    no.addEventListener('click', () => dialog.close());
    dialog.addEventListener('close', () => {
      dialog.remove();
      resolve(dialog.returnValue === 'send');
    });
  });
}
