-- Payments on Ethereum's chain whose block is not final yet: the watcher looks for them whenever the chain's final block moves.
create index payments_unfinalized on payments (currency, height)
  where lock is null and state = 'mined' and currency in ('ETH', 'USDT');
