/** A text that runs where it is taken for markup, and that reads in both directions. */
export const HOSTILE = '"><script>alert(1)</script><img src=x onerror=alert(2)> 🚀 مرحبا';

/** As much of it as a header may have. */
export const HOSTILE_HEADER = '"><script>alert(1)</script><img src=x onerror=alert(2)>';

/** The longest name there may be of a queue, a group, a key, a schedule or a label, without a place to break it. */
export const LONG_NAME = `${'Longest_name_'.repeat(20)}`.slice(0, 255);

/** A name that every object of a script already has. */
export const KNOWN_NAME = '__proto__';

/** What is added to a URL to make it very long. */
export const LONG_QUERY = `?${'long='.repeat(300)}`;
