/** A text that runs where it is taken for markup, and that reads in both directions. */
export const HOSTILE = '"><script>alert(1)</script><img src=x onerror=alert(2)> 🚀 مرحبا';
