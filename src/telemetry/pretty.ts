/** Formats a log event for a terminal: `10:04:12 info  listening  url=http://127.0.0.1:8080`. */
export function formatLine(record: Record<string, unknown>, color: boolean): string {
  const { level, time, event, ...fields } = record;
  const paint = color ? painted : (text: string) => text;
  const clock = String(time).slice(11, 19);
  const words = Object.entries(fields).map(([name, value]) => `${paint(`${name}=`, DIM)}${quoted(value)}`);
  const mark = paint(String(level).padEnd(5), COLOR_OF_LEVEL[String(level)] ?? DIM);
  return `${[paint(clock, DIM), mark, String(event), ...words].join(' ')}\n`;
}

const DIM = 2;
const COLOR_OF_LEVEL: Record<string, number> = { debug: DIM, info: 36, warn: 33, error: 31 };

function painted(text: string, code: number): string {
  return `\u001b[${code}m${text}\u001b[0m`;
}

/** Quotes a value with spaces or control characters, so that the input of a client cannot forge a log line. */
function quoted(value: unknown): string {
  const text = String(value);
  return /^[\x21-\x7e]+$/.test(text) ? text : JSON.stringify(text);
}
