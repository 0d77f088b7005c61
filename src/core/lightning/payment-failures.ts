// Why a payment over Lightning failed, in the node's words and in ours.

/** Our own channels did not have what it needed. */
export const LACKS_BALANCE = 'FAILURE_REASON_INSUFFICIENT_BALANCE';

const FAILURES: Readonly<Record<string, string>> = {
  FAILURE_REASON_NO_ROUTE: 'no route to the recipient was found within the fee limit',
  FAILURE_REASON_TIMEOUT: 'no route to the recipient was found in time',
  [LACKS_BALANCE]: 'the Lightning node could not send it',
  FAILURE_REASON_INCORRECT_PAYMENT_DETAILS: 'the recipient did not accept the payment',
};

/** @param failure the node's word; null where it has none */
export const failureText = (failure: string | null): string => FAILURES[failure ?? ''] ?? `it was not paid: ${failure}`;
