-- When a worker found the database to be another one than it had read (a failover, a dump or a snapshot that was put back), and by what. It
-- is written into the new one, and told for a while: what the old one wrote last may be missing here.
create table database_replacements (
  evidence   text primary key,
  noticed_at timestamptz not null
);
