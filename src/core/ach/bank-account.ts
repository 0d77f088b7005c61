// A bank account in the United States as the destination of a payout: ach:<routing>:<account>[:checking|savings].

export type BankAccount = {
  /** Nine digits, the last one a check digit. */
  readonly routing: string;
  /** 4 to 17 digits; a leading zero counts. */
  readonly account: string;
  readonly kind: 'checking' | 'savings';
};

const FORM = /^ach:(\d{9}):(\d{4,17})(?::(checking|savings))?$/;

/** Reads a destination; without a kind it is a checking account. Otherwise why it is none, as one sentence without a full stop. */
export function readBankAccount(destination: string): BankAccount | { readonly problem: string } {
  const found = FORM.exec(destination);
  if (found === null) return { problem: 'it takes ach:<routing>:<account>[:checking|savings], the account with 4 to 17 digits' };
  const [, routing = '', account = '', kind = 'checking'] = found;
  if (!isRouting(routing)) return { problem: 'the check digit of the routing number is wrong' };
  return { routing, account, kind: kind === 'savings' ? 'savings' : 'checking' };
}

/** Whether nine digits are a routing number (ABA): 3, 7, 1 times the digits are a multiple of ten; nine zeros are none. */
export function isRouting(digits: string): boolean {
  if (!/^\d{9}$/.test(digits) || digits === '000000000') return false;
  const weights = [3, 7, 1, 3, 7, 1, 3, 7, 1];
  return weights.reduce((total, weight, index) => total + weight * Number(digits[index]), 0) % 10 === 0;
}

/** A destination with the last four digits of its account only; any other text as it is. */
export function maskedAccount(destination: string): string {
  const read = readBankAccount(destination);
  return 'problem' in read ? destination : `ach:${read.routing}:…${read.account.slice(-4)}:${read.kind}`;
}
