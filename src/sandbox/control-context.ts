// What the controls can use, types only: the simulated currencies and exchanges, and the service's functions.
import type { UtxoCode } from '../core/currency.ts';
import type { Nodes } from './control-fields.ts';
import type { Exchanges } from './rates.ts';
import type { SandboxOptions, SandboxService } from './service-side.ts';

export type ControlContext = {
  readonly nodes: Nodes;
  readonly exchanges: Exchanges;
  readonly service: SandboxService;
  readonly clock: SandboxOptions['clock'];
  /** Makes the service look at a chain now, and waits until it has; not for ever. */
  readonly nudge: (currency: UtxoCode) => Promise<void>;
};
