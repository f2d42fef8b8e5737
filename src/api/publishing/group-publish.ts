/** Converts a publish to a URL group into one message for each current endpoint of the group (contract M 5.3). */
import type { PublishCommand } from '../../engine/messages/publish-command.ts';
import { publishesToGroup, type UrlGroup } from '../../engine/messages/url-groups.ts';
import { ApiError } from '../../protocol/errors.ts';
import { type ApiLimits, MESSAGES_PER_REQUEST_MAX } from '../limits.ts';

/**
 * Limits the messages and bytes that one request creates through URL groups, because all of them are saved in one
 * transaction. Each request has its own budget, and takes from it before the messages are created.
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

  /** Throws `ApiError` 400 when all groups of the request together make too many messages or bytes. */
  take(messages: number, bodyBytes: number): void {
    this.#messages += messages;
    this.#bytes += messages * bodyBytes;
    if (this.#messages > this.#messagesMax) throw budgetExceeded(`${this.#messagesMax} messages`);
    if (this.#bytes > this.#bytesMax) throw budgetExceeded(`${this.#bytesMax} bytes of bodies (batch_bytes_max)`);
  }
}

/** One publish of `shared` for each endpoint, in the group's order. Throws the errors of `budget`. */
export function groupCommands(
  group: UrlGroup,
  shared: Omit<PublishCommand, 'url'>,
  budget: GroupBudget,
): PublishCommand[] {
  budget.take(group.endpoints.length, shared.body.length);
  return publishesToGroup(group, shared);
}

function budgetExceeded(limit: string): ApiError {
  return new ApiError('invalid_request', `the URL groups of one request may make at most ${limit}`);
}
