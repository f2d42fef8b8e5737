/** A text with a script, which runs if the page inserts it as markup, and with a right-to-left word. */
export const HOSTILE = '"><script>alert(1)</script><img src=x onerror=alert(2)> 🚀 مرحبا';

/** The part of it that a header value may contain. */
export const HOSTILE_HEADER = '"><script>alert(1)</script><img src=x onerror=alert(2)>';

/** The longest valid name of a queue, a group, a key, a schedule or a label, without a line-break opportunity. */
export const LONG_NAME = `${'Longest_name_'.repeat(20)}`.slice(0, 255);

/** A name that every JavaScript object inherits. */
export const KNOWN_NAME = '__proto__';

/** A query that makes a URL very long. */
export const LONG_QUERY = `?${'long='.repeat(300)}`;
