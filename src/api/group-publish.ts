/** What does a publish to a URL group become? One message for each endpoint, as the group is now (contract M 5.3). */
import type { PublishCommand } from '../engine/messages/publish-command.ts';
import { publishesToGroup, type UrlGroup } from '../engine/url-groups.ts';
import { ApiError } from '../protocol/errors.ts';
import { type ApiLimits, MESSAGES_PER_REQUEST_MAX } from './limits.ts';

/**
 * Groups multiply what a request brings, and all of it is saved in one transaction, so the product has a limit as well:
 * one of these a request, asked before anything is multiplied.
 */
export class GroupBudget {
  readonly #messagesMax: number;
  readonly #bytesMax: number;
  #messages = 0;
  #bytes = 0;

  constructor(limits: ApiLimits) {
    this.#messagesMax = Math.max(MESSAGES_PER_REQUEST_MAX, limits.batchItemsMax);
    this.#bytesMax = Math.max(limits.messageBytesMax, limits.batchBytesMax);
  }

  /** Throws `ApiError` 400 when all groups of the request together make too much. */
  take(messages: number, bodyBytes: number): void {
    this.#messages += messages;
    this.#bytes += messages * bodyBytes;
    if (this.#messages > this.#messagesMax) throw tooMuch(`${this.#messagesMax} messages`);
    if (this.#bytes > this.#bytesMax) throw tooMuch(`${this.#bytesMax} bytes of bodies (batch_bytes_max)`);
  }
}

/** `shared` once for each endpoint, in their order. Throws what `budget` throws. */
export function groupCommands(
  group: UrlGroup,
  shared: Omit<PublishCommand, 'url'>,
  budget: GroupBudget,
): PublishCommand[] {
  budget.take(group.endpoints.length, shared.body.length);
  return publishesToGroup(group, shared);
}

function tooMuch(limit: string): ApiError {
  return new ApiError('invalid_request', `the URL groups of one request may make at most ${limit}`);
}
