// What our addresses on Ethereum's chain hold against what is known to have come and gone, see audit.ts: by the last comparison with a node
// (worker/rescan/address-balances.ts).
import { ETHER, EVM_CODES, isToken } from '../../core/currency.ts';
import type { Sql } from '../postgres/connect.ts';
import { SENDER } from '../sweeps/addresses.ts';
import { KNOWN } from '../sweeps/balances.ts';
import type { Question } from './audit.ts';

const TOKENS = EVM_CODES.filter(isToken)
  .map((code) => `'${code}'`)
  .join();
const ADDRESS = `'0x' || encode(substr(c.script, 4), 'hex') || coalesce(' of ' || t.id, ' of our own') || ' had ' || c.found || ' of ' || c.currency || ' after block ' || c.height`;
const FROM = 'address_balances c left join transactions t on t.script = c.script';

/** Nothing stops by one node's word; but it is the only one that there is of a loss that the other one hides. */
const DENIED = `select ${ADDRESS} || ' by the word of one node, and only ' || c.said_less || ' by that of ' || c.said_less_by || ', where ' || ${KNOWN}
                  || ' are known: one of them is wrong, or something is lost (an explorer of the chain says which; take a node that is wrong out of BURSAR_${ETHER}_RPC_URL)' as what
             from ${FROM} where c.said_less < ${KNOWN} and c.found >= ${KNOWN}`;

/** Less than there should be: somebody else has the key, or what was booked has not come. */
export const OF_BALANCES: readonly Question[] = [
  {
    id: 'EVM-1',
    says: "no address of ours on Ethereum's chain holds less than what is known to have come there and not to have gone",
    text: `select ${ADDRESS} || ', and ' || ${KNOWN} || ' are known: ' || (${KNOWN} - c.found) || ' are missing'
                  || case when c.currency in (${TOKENS}) then ' (bursar chain write-off, where its issuer has destroyed them; bursar chain rescan, where a node has shown what is not in its block)'
                          when exists (select from authorized_nonces n where n.sender = ${SENDER('c.script')}) then ' (bursar chain write-off, where code that its key has authorized has sent it)' else '' end as what
             from ${FROM} where c.found < ${KNOWN}`,
  },
];

/** More than that stops nothing, because anybody can send it in ways that a node without traces does not show. */
export const TOLD_OF_BALANCES: readonly Question[] = [
  {
    id: 'EVM-2',
    says: "no address of ours on Ethereum's chain holds more than what is known to have come",
    text: `select ${ADDRESS} || ', ' || (c.found - ${KNOWN}) || ' more than is known: nothing of it is booked'
                  || case when c.currency = '${ETHER}' then ' (bursar chain rescan finds what contracts sent, with a node that shows the calls of then)'
                          when (select sum(w.amount) from written_off w where w.currency = c.currency and w.script = c.script and w.batch_id is null) > 0 then ' (what was written off there may be there again: bursar chain write-off --take-back)' else '' end as what
             from ${FROM} where c.found > ${KNOWN}`,
  },
  {
    id: 'EVM-3',
    says: "no node says that less is held at an address of ours on Ethereum's chain than is known, while another one says that it is there",
    text: DENIED,
  },
];

/** What one node says to be missing at addresses of ours, and another one says to be there: at most three, one sentence each. */
export async function deniedBalances(sql: Sql): Promise<readonly string[]> {
  const { rows } = await sql.query<{ what: string }>({
    name: 'denied_balances',
    text: `${DENIED} order by c.currency, c.script limit 3`,
    values: [],
  });
  return rows.map(({ what }) => what);
}
