/** Which answers of an endpoint are a success (contract M 7.3)? */

/** Any 2xx; a redirection is none, since it is not followed. */
export function isSuccess(status: number): boolean {
  return status >= 200 && status <= 299;
}
