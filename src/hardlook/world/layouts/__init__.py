"""Writers of the planted world, one file a layout; `hardlook.world.write` chooses among them."""
