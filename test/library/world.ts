/** A server and endpoints for each test, closed after it. */
import { afterEach, beforeEach } from 'vitest';
import { Client } from '../../packages/workflow/src/index.ts';
import type { Waypost } from '../../src/testing/types.ts';
import { startWaypost } from '../../src/testing/waypost.ts';
import { Endpoints } from '../support/listen.ts';

export interface World {
  waypost: Waypost;
  endpoints: Endpoints;
  /** Of that server. */
  client: Client;
}

/** `take` gets the world of each test before it begins. */
export function eachWorld(take: (world: World) => void): void {
  let world: World;
  beforeEach(async () => {
    const waypost = await startWaypost();
    const client = new Client({ baseUrl: waypost.url, token: waypost.token });
    world = { waypost, endpoints: new Endpoints(), client };
    take(world);
  });
  afterEach(async () => {
    world.endpoints.close();
    await world.waypost.stop();
  });
}
