// The bodies of the calls that the bench makes.
const CREATE = { amount: '25.00', crypto_selected: 'BTC', label: 'bench {n}' };

/** One create_transaction, whose label the generator numbers. */
export function createBodies(token: string): string[] {
  return [JSON.stringify({ access_token: token, ...CREATE })];
}

/** One check_transaction for each of these. */
export function checkBodies(token: string, ids: readonly string[]): string[] {
  return ids.map((id) => JSON.stringify({ access_token: token, transaction_id: id }));
}
