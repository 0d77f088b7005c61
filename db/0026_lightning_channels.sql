-- The channels that our Lightning nodes had open, each by the output that it spends. gone_at: when it was first no longer listed as open.
create table lightning_channels (
  node text not null,
  channel_point text collate "C" not null,
  gone_at timestamptz,
  primary key (node, channel_point)
);
