// What the controls reach, types only: the simulated coins and exchanges, and the service's side. Put together by the sandbox.
import type { UtxoCode } from '../core/currency.ts';
import type { Nodes } from './control-fields.ts';
import type { Exchanges } from './rates.ts';
import type { SandboxOptions, SandboxService } from './service-side.ts';

export type ControlContext = {
  readonly nodes: Nodes;
  readonly exchanges: Exchanges;
  readonly service: SandboxService;
  readonly clock: SandboxOptions['clock'];
  /** Lets the service look at a chain now, and waits until it has; not for ever. */
  readonly nudge: (currency: UtxoCode) => Promise<void>;
};
