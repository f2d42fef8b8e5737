/** The types of Express that the tests use; the package has none. */
declare module 'express' {
  import type { RequestListener } from 'node:http';

  interface Application extends RequestListener {
    use(handler: unknown): void;
    use(path: string, handler: unknown): void;
  }

  function express(): Application;

  namespace express {
    /** Middleware that reads JSON bodies. */
    function json(options?: { limit?: string }): unknown;
  }

  export = express;
}
