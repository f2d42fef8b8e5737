/** Decides which answers of an endpoint are a success (contract M 7.3). */

/** Any 2xx. A redirection is a failure, since it is not followed. */
export function isSuccess(status: number): boolean {
  return status >= 200 && status <= 299;
}
