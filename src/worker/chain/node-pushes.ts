// The announcements of the node that is read, for one watcher.
import type { ChainPort, PushSubscription } from '../../core/ports.ts';

/** The pushes of the node that is read: opened once, and again when another node is read; a node without ZMQ is asked only once. */
export function createSubscription(port: ChainPort) {
  let open: PushSubscription | null = null;
  let asked: { readonly node: string | null } | null = null;
  async function close(): Promise<void> {
    const closing = open;
    open = null;
    asked = null;
    await closing?.close();
  }
  return {
    isLive: () => open?.isLive() === true,
    async open(node: string | null, push: Parameters<ChainPort['subscribe']>[0]) {
      if (asked !== null && asked.node === node) return;
      await close();
      open = await port.subscribe(push);
      asked = { node };
    },
    close,
  };
}
